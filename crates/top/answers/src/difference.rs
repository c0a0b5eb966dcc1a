//! Comparison of two recordings: the causes of the difference between their steps.

mod align;
mod costs;

use std::collections::BTreeMap;

use serde::Serialize;
use steptime_predict::{INTERVAL_LEVEL, Prediction, Step};
use steptime_trace::Nanos;

use self::costs::Cost;
use super::doubts::{Caveats, DoubtEntry};
use super::shared::{SCHEMA, ms};
use super::what_if::{Side, why};

/// Two steps, and the causes of their difference. Pairs hold the first and the second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `compare`.
    pub command: &'static str,
    /// The first step.
    pub a: ComparedStep,
    /// The second step.
    pub b: ComparedStep,
    /// Difference of the second step's time, as a share of the first.
    pub longer: f64,
    /// Causes of the difference, largest first.
    pub why: Vec<String>,
    /// Top-level ops, aligned, largest differences first.
    pub ops: Vec<OpPair>,
    /// Annotations, aligned, largest differences first.
    pub annotations: Vec<OpPair>,
    /// Kernels, copies and memsets by name, largest differences first.
    pub kernels: Vec<KernelPair>,
    /// The probability of the intervals.
    pub interval_level: f64,
}

/// One of the two steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedStep {
    /// The input, as given.
    pub input: String,
    /// The recording: its folder or file.
    pub name: String,
    /// The GPU predicted for.
    pub device: Option<String>,
    /// Time of its step.
    #[serde(flatten)]
    pub step: Side,
    /// Doubts about it.
    pub doubts: Vec<DoubtEntry>,
    /// Its title. Not in the JSON.
    #[serde(skip)]
    pub title: String,
}

/// An op or an annotation in one of the steps or in both. Its times are zero where it is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpPair {
    /// Its name.
    pub name: String,
    /// Its number among the ops of the same name in its step, from 1; `None` where it is absent.
    pub nth: [Option<usize>; 2],
    /// Annotations around it, outermost first.
    pub within: Vec<String>,
    /// Host time, milliseconds.
    pub host_ms: [f64; 2],
    /// Time of the device activities that it launches, milliseconds.
    pub device_ms: [f64; 2],
    /// Its part of the critical path, milliseconds.
    pub critical_ms: [f64; 2],
}

/// Kernels of one name. Their time is zero where they are absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelPair {
    /// Their name.
    pub name: String,
    /// Number per step.
    pub count: [usize; 2],
    /// Total time, milliseconds.
    pub device_ms: [f64; 2],
}

impl Difference {
    /// Compares two predictions, each with its step.
    #[must_use]
    pub fn between(a: (&Step, &Prediction), b: (&Step, &Prediction)) -> Difference {
        let (first, second) = (costs::collect(&a.0.graph, a.1), costs::collect(&b.0.graph, b.1));
        let pairs = pairs(&first, &second);
        let (annotations, ops) = pairs.into_iter().partition::<Vec<_>, _>(|(annotation, _)| *annotation);
        let sorted = |pairs: Vec<(bool, OpPair)>| {
            let mut pairs: Vec<OpPair> = pairs.into_iter().map(|(_, pair)| pair).collect();
            pairs.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
            pairs
        };
        Difference {
            schema: SCHEMA,
            command: "compare",
            a: ComparedStep::new(a.0, a.1),
            b: ComparedStep::new(b.0, b.1),
            longer: b.1.step.0 as f64 / (a.1.step.0 as f64).max(1.0) - 1.0,
            why: why(a.1, b.1),
            ops: sorted(ops),
            annotations: sorted(annotations),
            kernels: kernels(a.1, b.1),
            interval_level: INTERVAL_LEVEL,
        }
    }
}

impl ComparedStep {
    fn new(step: &Step, prediction: &Prediction) -> ComparedStep {
        let named = prediction.asked.device.as_ref().map(|device| device.name.clone());
        ComparedStep {
            input: step.input.display().to_string(),
            name: step.name.clone(),
            device: named.or_else(|| step.device_name()),
            step: Side::new(prediction, step.batch()),
            doubts: Caveats::from_prediction(prediction, step).doubts,
            title: step.title(),
        }
    }
}

impl OpPair {
    /// The largest of its differences, milliseconds: on the critical path or on the device. The host's difference only breaks ties.
    fn weight(&self) -> f64 {
        let apart = |[a, b]: [f64; 2]| (b - a).abs();
        apart(self.critical_ms).max(apart(self.device_ms)) + 1e-6 * apart(self.host_ms)
    }
}

impl KernelPair {
    /// Whether kernels of this name run in one of the two only.
    #[must_use]
    pub fn is_in_one(&self) -> bool {
        self.count.contains(&0)
    }
}

/// Ops and annotations of both, aligned by name and by the annotations around them, and whether each is an annotation.
fn pairs(first: &[Cost], second: &[Cost]) -> Vec<(bool, OpPair)> {
    let key = |cost: &Cost| (cost.name.clone(), cost.annotation);
    let keys = |costs: &[Cost]| costs.iter().map(key).collect::<Vec<_>>();
    let mut seen: [BTreeMap<(String, bool), usize>; 2] = Default::default();
    let mut all = Vec::new();
    for places in align::align(&keys(first), &keys(second)) {
        let costs = [places[0].and_then(|at| first.get(at)), places[1].and_then(|at| second.get(at))];
        let Some(known) = costs[0].or(costs[1]) else { continue };
        let mut nth = [None; 2];
        for side in 0..2 {
            if let Some(cost) = costs[side] {
                let count = seen[side].entry(key(cost)).or_default();
                *count += 1;
                nth[side] = Some(*count);
            }
        }
        let times = |time: fn(&Cost) -> Nanos| costs.map(|cost| cost.map_or(0.0, |cost| ms(time(cost))));
        let pair = OpPair {
            name: known.name.clone(),
            nth,
            within: known.within.clone(),
            host_ms: times(|cost| cost.host),
            device_ms: times(|cost| cost.device),
            critical_ms: times(|cost| cost.critical),
        };
        all.push((known.annotation, pair));
    }
    all
}

fn kernels(a: &Prediction, b: &Prediction) -> Vec<KernelPair> {
    let mut rows: BTreeMap<&str, KernelPair> = BTreeMap::new();
    for (side, prediction) in [a, b].into_iter().enumerate() {
        for kernel in &prediction.kernels {
            let row = rows.entry(&kernel.name).or_insert_with(|| KernelPair {
                name: kernel.name.clone(),
                count: [0; 2],
                device_ms: [0.0; 2],
            });
            row.count[side] += kernel.count;
            row.device_ms[side] += ms(kernel.device);
        }
    }
    let mut rows: Vec<KernelPair> = rows.into_values().collect();
    let apart = |row: &KernelPair| (row.device_ms[1] - row.device_ms[0]).abs();
    rows.sort_by(|a, b| apart(b).total_cmp(&apart(a)));
    rows
}
