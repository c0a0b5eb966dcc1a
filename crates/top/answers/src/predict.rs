//! A predicted step.

mod rows;

use serde::Serialize;
use steptime_cost::Process;
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

pub(super) use self::rows::pieces;
use steptime_predict::{Baseline, Error, HostSlowdown, INTERVAL_LEVEL, Prediction, Query, QueryEcho, Step};

pub use self::rows::{ModuleTime, Op, Part, Piece};
use self::rows::{modules, ops};
use super::coverage::GraphCoverage;
use super::device_time_sources::{FamilyTime, ModelShares};
use super::doubts::Caveats;
pub use super::doubts::DoubtEntry;
use super::replay::ReplayEntry;
use super::shared::{KernelTime, PeakMemory, SCHEMA, Steps, as_object, ms, samples_per_s};

/// A predicted step. The baselines predict only its time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictionReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `predict`.
    pub command: &'static str,
    /// The input, as given.
    pub input: String,
    /// The recording: its folder or file.
    pub name: String,
    /// Its rank, where known.
    pub rank: Option<u32>,
    /// The GPU predicted for.
    pub device: Option<String>,
    /// `simulate`, `paper`, `paper-published` or `kernel-sum`.
    pub method: &'static str,
    /// Source of the host's times: `own`, `profiled`, `default`, or a file.
    pub host: String,
    /// Assumed slowness of the host, where one factor gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_slower_than: Option<HostSlowdown>,
    /// Source of the kernels' times: `measured`, or the device as given.
    pub kernels: String,
    /// Time from one step to the next, milliseconds.
    pub step_ms: f64,
    /// The state of the process: `profiled` or `fresh`.
    pub process: &'static str,
    /// Interval of the step time at `interval_level`, milliseconds.
    pub interval_ms: Option<[f64; 2]>,
    /// Probability of the interval.
    pub interval_level: f64,
    /// Assumptions and doubts, worst first.
    pub doubts: Vec<DoubtEntry>,
    /// Replay of the recording with the profiler's cost left in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayEntry>,
    /// Samples per step, where known.
    pub batch: Option<u64>,
    /// Samples per second.
    pub samples_per_s: Option<f64>,
    /// Device active time of the step, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<f64>,
    /// Device active time as a share of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// Active time of each device, where one process uses several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceActivity>,
    /// Device idle time of the step, milliseconds by cause.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_object")]
    pub idle_ms: Vec<(&'static str, f64)>,
    /// Peak device memory of the step's tensors, megabytes by kind.
    pub peak_mb: Option<PeakMemory>,
    /// Whether the GPU has room for that with a tenth of its memory left free; `None` where either is unknown.
    pub fits: Option<bool>,
    /// Time by phase of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<Part>>,
    /// Time by annotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Vec<Part>>,
    /// Time by module of the model, where the recorder noted modules; outer modules come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleTime>,
    /// Top-level ops by name, most expensive first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<Op>>,
    /// Kernels by name, longest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels_by_name: Option<Vec<KernelTime>>,
    /// The critical path, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<Vec<Piece>>,
    /// The recording's own host gaps relative to those of the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_slowness: Option<f64>,
    /// Counts of joined and priced events.
    pub coverage: GraphCoverage,
    /// Sources of kernel times as shares of device time, where a device profile priced them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_coverage: Option<ModelShares>,
    /// Kernel times by family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub families: Option<Vec<FamilyTime>>,
    /// The recorded steps.
    pub steps: Steps,
    /// Its title, as [`Step::title`]. Not in the JSON.
    #[serde(skip)]
    pub title: String,
    /// Whether the step was made from an execution trace alone. Not in the JSON.
    #[serde(skip)]
    pub derived: bool,
    /// Repairs, assumptions and guesses, in words; all are among the doubts too.
    pub warnings: Vec<String>,
}

/// Active time of one of several devices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceActivity {
    /// Its number.
    pub device: u32,
    /// Its active time in the step, milliseconds.
    pub active_ms: f64,
    /// Its active time as a share of the step.
    pub utilisation: f64,
}

impl DeviceActivity {
    /// One row per device; empty where there is only one.
    fn all(graph: &StepGraph, simulated: &Prediction, step: Nanos) -> Vec<DeviceActivity> {
        let all = simulated.timeline.active_by_device(graph);
        let share = |active: Nanos| active.0 as f64 / step.0.max(1) as f64;
        let row =
            |(device, active)| DeviceActivity { device, active_ms: ms(active), utilisation: share(active) };
        if all.len() > 1 { all.into_iter().map(row).collect() } else { Vec::new() }
    }
}

impl PredictionReport {
    /// Runs a query and makes the answer: by simulation, or by the method given with [`Query::by`].
    ///
    /// # Errors
    /// As [`Query::simulate`].
    pub fn from_query(query: &Query<'_>) -> Result<PredictionReport, Error> {
        let step = query.step();
        match query.way() {
            None => {
                let prediction = query.simulate()?;
                let answer = PredictionReport::without_path(&prediction, step);
                // The timeline is dropped before the path is written, which is as large.
                let Prediction { path, .. } = prediction;
                Ok(PredictionReport { critical_path: Some(pieces(&step.graph, &path)), ..answer })
            }
            Some(way) => {
                let time = query.baseline(way)?;
                Ok(PredictionReport::by_baseline(&query.settings_in_effect()?, way, step, time))
            }
        }
    }

    /// Makes the answer. `step` is the step that was predicted.
    #[must_use]
    pub fn from_prediction(prediction: &Prediction, step: &Step) -> PredictionReport {
        let critical_path = Some(pieces(&step.graph, &prediction.path));
        PredictionReport { critical_path, ..PredictionReport::without_path(prediction, step) }
    }

    fn without_path(prediction: &Prediction, step: &Step) -> PredictionReport {
        PredictionReport::new(&prediction.asked, "simulate", step, prediction.step, Some(prediction))
    }

    /// Makes the answer of a baseline, which predicts only the step's time.
    #[must_use]
    pub fn by_baseline(asked: &QueryEcho, way: Baseline, step: &Step, time: Nanos) -> PredictionReport {
        PredictionReport::new(asked, way.name(), step, time, None)
    }

    /// Makes the answer without the critical path from a time and, where there is one, the simulation.
    fn new(
        asked: &QueryEcho,
        method: &'static str,
        recorded: &Step,
        time: Nanos,
        simulated: Option<&Prediction>,
    ) -> PredictionReport {
        let graph = &recorded.graph;
        let device = simulated.and_then(|s| s.device.as_ref());
        let kernel_coverage = device.map(|d| ModelShares::new(&d.prices.coverage));
        let step_ms = ms(time);
        let batch = recorded.batch();
        let active = simulated.map(|s| ms(s.active));
        let idle = simulated.into_iter().flat_map(|s| s.idle_by_cause.iter());
        let parts = |s: &Prediction| s.phases.iter().map(|(p, cost)| Part::new(p.name(), cost)).collect();
        let named = |s: &Prediction| s.annotations.iter().map(|(name, cost)| Part::new(name, cost)).collect();
        let Caveats { doubts, warnings } = Caveats::collect(asked, recorded, simulated, simulated);
        PredictionReport {
            schema: SCHEMA,
            command: "predict",
            input: recorded.input.display().to_string(),
            name: recorded.name.clone(),
            rank: recorded.rank,
            device: device_of(asked, recorded),
            method,
            host: asked.host.clone(),
            host_slower_than: asked.host_slower_than.clone(),
            kernels: asked.kernels.clone(),
            step_ms,
            process: process(asked.process),
            interval_ms: simulated.map(|s| s.interval.map(ms)),
            interval_level: INTERVAL_LEVEL,
            doubts,
            replay: simulated.and_then(|s| s.replay.as_ref()).map(ReplayEntry::new),
            batch,
            samples_per_s: samples_per_s(batch, time),
            active_ms: active,
            utilisation: active.filter(|_| step_ms > 0.0).map(|active| active / step_ms),
            devices: simulated.map(|s| DeviceActivity::all(graph, s, time)).unwrap_or_default(),
            idle_ms: idle.map(|(cause, time)| (cause.key(), ms(time))).collect(),
            peak_mb: simulated.and_then(|s| s.peak.as_ref()).map(PeakMemory::new),
            fits: simulated.and_then(|s| s.fits),
            phases: simulated.map(parts),
            annotations: simulated.map(named),
            modules: simulated.map(|s| modules(recorded, s)).unwrap_or_default(),
            ops: simulated.map(|s| ops(graph, s)),
            kernels_by_name: simulated.map(|s| s.kernels.iter().map(KernelTime::new).collect()),
            critical_path: None,
            host_slowness: simulated.and_then(|s| s.slowness),
            coverage: GraphCoverage::new(&graph.coverage, simulated.map(|s| &s.found)),
            kernel_coverage,
            families: device.map(FamilyTime::all),
            steps: Steps::from_graph(graph),
            title: recorded.title(),
            derived: recorded.arguments.is_derived(),
            warnings,
        }
    }
}

pub(super) fn process(state: Process) -> &'static str {
    match state {
        Process::Profiled => "profiled",
        Process::Fresh => "fresh",
    }
}

/// The GPU predicted for: the given one, else the one recorded on.
fn device_of(asked: &QueryEcho, recorded: &Step) -> Option<String> {
    let named = asked.device.as_ref().map(|device| device.name.clone());
    let meta = || recorded.meta.as_ref().and_then(|meta| meta.device.clone());
    named.or_else(|| recorded.device_name()).or_else(meta)
}
