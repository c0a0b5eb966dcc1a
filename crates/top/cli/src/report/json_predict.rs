//! The answer of `predict`, on the wire.

use serde::Serialize;
use steptime::sim::breakdown::PhaseCost;
use steptime::sim::critical::Stretch;
use steptime::{Prediction, Process, Step};

use super::json::{Kernel, SCHEMA, Steps, as_object, ms};
use super::json_coverage::CoverageJson;
use super::json_device::{FamilyTime, ModelCoverageJson};
use super::json_replay::ReplayJson;
use super::{place, warnings};
use steptime::cost::device::DeviceProfile;
use steptime::graph::StepGraph;
use steptime::trace::Nanos;

pub use steptime::INTERVAL_LEVEL as LEVEL;

/// The state of the process predicted.
fn process(recorded: &Step) -> &'static str {
    match recorded.process {
        Process::Profiled => "profiled",
        Process::Fresh => "fresh",
    }
}

/// What was asked for, as it was typed.
pub struct Asked<'a> {
    /// The input.
    pub input: String,
    /// The method.
    pub method: &'static str,
    /// Where the host's times come from.
    pub host: String,
    /// Where the kernels' times come from.
    pub kernels: String,
    /// The device profile, where kernel times come from one.
    pub profile: Option<&'a DeviceProfile>,
    /// How many times as slow as which machine the host is, where one factor says it.
    pub host_slower: Option<(f64, String)>,
    /// Whether the host's times are those of the default profile because there are no others.
    pub host_assumed: bool,
    /// Repairs made while reading.
    pub repairs: Option<String>,
}

/// A host that takes so many times as long as a machine for everything.
#[derive(Debug, Serialize)]
pub struct HostSlowerThan {
    pub times: f64,
    pub machine: String,
}

/// A predicted step. The baselines know its time alone.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    pub input: String,
    pub name: String,
    pub rank: Option<u32>,
    pub device: Option<String>,
    pub method: &'static str,
    pub host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_slower_than: Option<HostSlowerThan>,
    pub kernels: String,
    pub step_ms: f64,
    pub process: &'static str,
    pub interval_ms: Option<[f64; 2]>,
    pub interval_level: f64,
    /// What speaks against the prediction.
    pub doubts: Vec<DoubtJson>,
    /// The recording replayed with the profiler's cost left in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayJson>,
    pub batch: Option<u64>,
    pub samples_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_object")]
    pub idle_ms: Vec<(&'static str, f64)>,
    #[serde(skip)]
    pub idle_names: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<Part>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Vec<Part>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<Op>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels_by_name: Option<Vec<Kernel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<Vec<Piece>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_slowness: Option<f64>,
    pub coverage: CoverageJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_coverage: Option<ModelCoverageJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub families: Option<Vec<FamilyTime>>,
    pub steps: Steps,
    /// Whether the step was made from an execution trace alone.
    #[serde(skip)]
    pub derived: bool,
    pub warnings: Vec<String>,
}

/// What speaks against a prediction.
#[derive(Debug, Serialize)]
pub struct DoubtJson {
    /// What it is.
    pub kind: &'static str,
    /// In words.
    pub text: String,
    /// Whether no single time can be given.
    pub no_estimate: bool,
}

impl DoubtJson {
    /// Puts a doubt into words.
    pub fn new(doubt: &steptime::Doubt) -> DoubtJson {
        DoubtJson { kind: doubt.kind, text: doubt.text.clone(), no_estimate: doubt.no_estimate }
    }
}

/// A phase or an annotation.
#[derive(Debug, Serialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Host time.
    pub host_ms: f64,
    /// Device active time of what it launched.
    pub device_ms: f64,
}

/// Top-level ops of one name.
#[derive(Debug, Serialize)]
pub struct Op {
    /// Their name.
    pub name: String,
    /// How many there are.
    pub count: usize,
    /// Host time.
    pub host_ms: f64,
    /// Time of the device activities they launched.
    pub device_ms: f64,
    /// Their part of the critical path.
    pub critical_ms: f64,
    /// How much later any part of them could be without a longer step; `None` where nothing is known.
    pub slack_ms: Option<f64>,
}

/// A stretch of the critical path.
#[derive(Debug, Serialize)]
pub struct Piece {
    /// `host`, `device`, `launch` or `return`.
    pub place: &'static str,
    /// The op, kernel or call.
    pub what: String,
    /// The part of the step.
    pub phase: &'static str,
    /// How long it is.
    pub ms: f64,
}

impl Answer {
    /// Puts a prediction into words: its time, and what the simulation knows beyond it where there was one.
    pub fn new(asked: Asked<'_>, recorded: &Step, step: Nanos, simulated: Option<&Prediction>) -> Answer {
        let graph = &recorded.graph;
        let device = simulated.and_then(|s| s.device.as_ref());
        let step_ms = ms(step);
        let batch = recorded.batch();
        let active = simulated.map(|s| ms(s.active));
        let mut warnings = recorded.assumed.clone();
        if !recorded.arguments.is_derived() {
            warnings.extend(warnings::of_graph(graph));
        }
        warnings.extend(asked.repairs);
        if let Some((times, machine)) = asked.host_slower.as_ref().filter(|_| asked.host_assumed) {
            warnings.push(warnings::of_assumed_host(*times, machine));
        }
        let kernel_coverage = device.map(|d| ModelCoverageJson::new(&d.prices.coverage));
        if let Some(profile) = asked.profile {
            warnings.extend(warnings::of_device(profile, kernel_coverage.as_ref()));
        }
        if let Some(s) = simulated {
            warnings.extend(warnings::of_prices(s.slowness, s.found.unpriced));
        }
        let meta = recorded.meta.as_ref();
        Answer {
            schema: SCHEMA,
            command: "predict",
            input: asked.input,
            name: recorded.name.clone(),
            rank: recorded.rank,
            device: asked
                .profile
                .map(|profile| profile.spec.name.clone())
                .or_else(|| graph.device.clone())
                .or_else(|| meta.and_then(|m| m.device.clone())),
            method: asked.method,
            host: asked.host,
            host_slower_than: asked.host_slower.map(|(times, machine)| HostSlowerThan { times, machine }),
            kernels: asked.kernels,
            step_ms,
            process: process(recorded),
            interval_ms: simulated.map(|s| s.interval.map(ms)),
            interval_level: LEVEL,
            doubts: simulated.into_iter().flat_map(|s| &s.doubts).map(DoubtJson::new).collect(),
            replay: simulated.and_then(|s| s.replay.as_ref()).map(ReplayJson::new),
            batch,
            samples_per_s: batch.filter(|_| step_ms > 0.0).map(|b| b as f64 * 1000.0 / step_ms),
            active_ms: active,
            utilisation: active.filter(|_| step_ms > 0.0).map(|active| active / step_ms),
            idle_ms: simulated
                .map(|s| s.idle_by_cause.iter().map(|(c, t)| (c.key(), ms(t))).collect())
                .unwrap_or_default(),
            idle_names: simulated
                .map(|s| s.idle_by_cause.iter().map(|(c, _)| c.name()).collect())
                .unwrap_or_default(),
            phases: simulated
                .map(|s| s.phases.iter().map(|(phase, cost)| Part::new(phase.name(), cost)).collect()),
            annotations: simulated
                .map(|s| s.annotations.iter().map(|(name, cost)| Part::new(name, cost)).collect()),
            ops: simulated.map(|s| ops(graph, s)),
            kernels_by_name: simulated.map(kernels),
            critical_path: simulated.map(|s| pieces(graph, &s.path)),
            host_slowness: simulated.and_then(|s| s.slowness),
            coverage: CoverageJson::new(&graph.coverage, simulated.map(|s| &s.found)),
            kernel_coverage,
            families: device.map(FamilyTime::all),
            steps: Steps::of(graph),
            derived: recorded.arguments.is_derived(),
            warnings,
        }
    }
}

impl Part {
    fn new(name: &str, cost: &PhaseCost) -> Part {
        Part { name: name.into(), host_ms: ms(cost.host), device_ms: ms(cost.device) }
    }
}

fn ops(graph: &StepGraph, simulated: &Prediction) -> Vec<Op> {
    let slack = super::slack::by_op(graph, &simulated.slack);
    let op = |cost: &steptime::sim::breakdown::OpCost| Op {
        name: cost.name.clone(),
        count: cost.count,
        host_ms: ms(cost.host),
        device_ms: ms(cost.device),
        critical_ms: ms(cost.critical),
        slack_ms: slack.get(cost.name.as_str()).copied().map(ms),
    };
    simulated.ops.iter().map(op).collect()
}

fn kernels(simulated: &Prediction) -> Vec<Kernel> {
    let kernel = |k: &steptime::sim::breakdown::KernelCost| Kernel {
        name: k.name.clone(),
        count: k.count,
        device_ms: ms(k.device),
    };
    simulated.kernels.iter().map(kernel).collect()
}

/// Stretches in order; neighbours that would read the same are one.
fn pieces(graph: &StepGraph, path: &[Stretch]) -> Vec<Piece> {
    let mut pieces: Vec<(&'static str, &str, &'static str, Nanos)> = Vec::new();
    for stretch in path {
        let (place, what) = (place::kind(stretch.place), place::what(graph, stretch.place));
        let phase = place::phase(graph, stretch.place).name();
        let time = stretch.to - stretch.from;
        match pieces.last_mut() {
            Some(last) if (last.0, last.1, last.2) == (place, what, phase) => last.3 += time,
            _ => pieces.push((place, what, phase, time)),
        }
    }
    pieces
        .into_iter()
        .map(|(place, what, phase, time)| Piece { place, what: what.into(), phase, ms: ms(time) })
        .collect()
}
