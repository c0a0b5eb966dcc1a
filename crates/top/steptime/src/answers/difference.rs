//! Two recordings: where the difference of their steps comes from.

mod align;
mod costs;

use std::collections::BTreeMap;

use serde::Serialize;
use steptime_trace::Nanos;

use self::costs::Cost;
use super::doubts::{DoubtSaid, Said};
use super::shared::{SCHEMA, ms};
use super::what_if::{Side, why};
use crate::predict::{INTERVAL_LEVEL, Prediction};
use crate::step::Step;

/// Two steps, and where their difference comes from. Pairs are of the first and of the second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `compare`.
    pub command: &'static str,
    /// The first.
    pub a: Recorded,
    /// The second.
    pub b: Recorded,
    /// How much longer the second takes, as a share of the first.
    pub longer: f64,
    /// Where the difference comes from, the largest part first.
    pub why: Vec<String>,
    /// Top-level ops, lined up, with the largest differences first.
    pub ops: Vec<OpPair>,
    /// Annotations, likewise.
    pub annotations: Vec<OpPair>,
    /// Kernels, copies and memsets by name, with the largest differences first.
    pub kernels: Vec<KernelPair>,
    /// The probability of the intervals.
    pub interval_level: f64,
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// The input, as it was named.
    pub input: String,
    /// The recording: its folder or file.
    pub name: String,
    /// The GPU predicted for.
    pub device: Option<String>,
    /// Its step.
    #[serde(flatten)]
    pub step: Side,
    /// What speaks against it.
    pub doubts: Vec<DoubtSaid>,
    /// What to call it. Not in the JSON.
    #[serde(skip)]
    pub title: String,
}

/// An op or an annotation in one of the two or in both. What is not there takes no time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpPair {
    /// Its name.
    pub name: String,
    /// Which of its name it is in its step, from 1; `None` where it is not there.
    pub nth: [Option<usize>; 2],
    /// The annotations around it, from the outside.
    pub within: Vec<String>,
    /// Host time, milliseconds.
    pub host_ms: [f64; 2],
    /// Time of the device activities that it launched, milliseconds.
    pub device_ms: [f64; 2],
    /// Its part of the critical path, milliseconds.
    pub critical_ms: [f64; 2],
}

/// Kernels of one name. What is not there takes no time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelPair {
    /// Their name.
    pub name: String,
    /// How many a step.
    pub count: [usize; 2],
    /// Their time together, milliseconds.
    pub device_ms: [f64; 2],
}

impl Difference {
    /// The difference of two predictions, each beside the step that it is of.
    #[must_use]
    pub fn of(a: (&Step, &Prediction), b: (&Step, &Prediction)) -> Difference {
        let (first, second) = (costs::of(&a.0.graph, a.1), costs::of(&b.0.graph, b.1));
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
            a: Recorded::new(a.0, a.1),
            b: Recorded::new(b.0, b.1),
            longer: b.1.step.0 as f64 / (a.1.step.0 as f64).max(1.0) - 1.0,
            why: why(a.1, b.1),
            ops: sorted(ops),
            annotations: sorted(annotations),
            kernels: kernels(a.1, b.1),
            interval_level: INTERVAL_LEVEL,
        }
    }
}

impl Recorded {
    fn new(step: &Step, prediction: &Prediction) -> Recorded {
        let named = prediction.asked.device.as_ref().map(|device| device.name.clone());
        Recorded {
            input: step.input.display().to_string(),
            name: step.name.clone(),
            device: named.or_else(|| step.graph.device.clone()),
            step: Side::of(prediction, step.batch()),
            doubts: Said::of_prediction(prediction, step).doubts,
            title: step.title(),
        }
    }
}

impl OpPair {
    /// The largest of its differences, milliseconds: on the critical path, else on the device or the host as much as
    /// that can matter.
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

/// Ops and annotations of both, lined up by name and by the annotations around them; whether each is an annotation.
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
