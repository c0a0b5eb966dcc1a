//! Prediction of a step's time.

mod host_side;
mod waits;

use steptime_cost::device::DeviceSpec;
use steptime_cost::overheads::Overheads;
use steptime_cost::{PricedGraph, Process};
use steptime_graph::{ActivityId, Phase, TiVec};
use steptime_sim::breakdown::{self, KernelCost, OpCost, PhaseCost};
use steptime_sim::critical::{self, Slack, Stretch};
use steptime_sim::{Idle, Timeline, baseline as baselines};
use steptime_step::Peak;
use steptime_trace::Nanos;

pub use self::host_side::host_costs;
pub(crate) use self::host_side::{host_side, ordinary_slowness};
pub(crate) use self::waits::unprofiled;
use crate::doubt::{self, Doubt, Evidence};
use crate::memory;
use crate::pricing::{self, PricedLaunches};
use crate::query_echo::QueryEcho;
use crate::replay::SelfCheck;
use crate::shipped_host::own_constants;
use crate::step::Step;
use crate::time_sources::{Host, Kernels};
use crate::uncertainty::{NextRun, uncertainty};

/// A baseline method for the step time, for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// The published Algorithm 1 with overheads extracted by the published method; only the profiler's cost is the one
    /// that steptime measured.
    Paper,
    /// The published algorithm with the published cost of the profiler: 2 us per host event, 4 us per device event.
    PaperPublished,
    /// The sum of all kernels, copies and memsets.
    KernelSum,
}

impl Baseline {
    /// Its name in answers: `paper`, `paper-published`, `kernel-sum`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Paper => "paper",
            Baseline::PaperPublished => "paper-published",
            Baseline::KernelSum => "kernel-sum",
        }
    }
}

/// The level of [`Prediction::interval`].
pub const INTERVAL_LEVEL: f64 = 0.9;

/// A predicted step with its explanation.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// Time from one step to the next.
    pub step: Nanos,
    /// Interval of the step time with probability [`INTERVAL_LEVEL`].
    pub interval: [Nanos; 2],
    /// Doubts about the step time; they widen the interval.
    pub doubts: Vec<Doubt>,
    /// Device active time of the step.
    pub active: Nanos,
    /// Device idle time of the step.
    pub idle: Nanos,
    /// Device idle time by cause.
    pub idle_by_cause: Idle,
    /// Times of all events.
    pub timeline: Timeline,
    /// The critical path.
    pub path: Vec<Stretch>,
    /// Slack of each event.
    pub slack: Slack,
    /// Top-level ops, most expensive first.
    pub ops: Vec<OpCost>,
    /// Kernels, most expensive first.
    pub kernels: Vec<KernelCost>,
    /// Time by phase.
    pub phases: Vec<(Phase, PhaseCost)>,
    /// Time by annotation.
    pub annotations: Vec<(String, PhaseCost)>,
    /// Sources of the host's times.
    pub found: steptime_cost::GapSources,
    /// Ratio of the recording's own host gaps to those of the profile in use or, without one, of the default profile.
    pub slowness: Option<f64>,
    /// Launches and their prices, where kernel times come from a device profile.
    pub device: Option<PricedLaunches>,
    /// Replay of the recording with the profiler's cost left in; `None` if nothing was timed.
    pub replay: Option<SelfCheck>,
    /// Peak device memory of the step's tensors; `None` if unknown.
    pub peak: Option<Peak>,
    /// Whether the GPU has room for that peak; `None` if the peak or the GPU's memory is unknown.
    pub fits: Option<bool>,
    /// Settings of the prediction.
    pub asked: QueryEcho,
}

/// The time of each device activity of a step, with the half-width of their sum and, from a device profile, their prices.
pub(crate) fn device_times(
    recorded: &Step,
    kernels: &Kernels<'_>,
) -> (TiVec<ActivityId, Nanos>, f64, Option<PricedLaunches>) {
    let graph = &recorded.graph;
    match kernels {
        Kernels::Measured => (PricedGraph::measured_durations(graph), uncertainty().kernels.measured, None),
        Kernels::Device { profile, models, indices, settings } => {
            let launches = recorded.launches(indices, *settings);
            let mut prices = pricing::price(graph, &launches, profile, *models);
            pricing::price_alone(graph, &profile.spec.name, &mut prices.durations);
            (prices.durations.clone(), prices.spread, Some(PricedLaunches { launches, prices }))
        }
    }
}

/// Predicts a step: simulates threads, streams and waits.
///
/// [`Step::predict`] does the same as a query, and checks that its input has the data for it.
pub fn predict(recorded: &Step, host: &Host<'_>, kernels: &Kernels<'_>) -> Prediction {
    let asked = QueryEcho::new(host, kernels, recorded.process);
    predict_in(recorded, host, kernels, asked, None)
}

/// Predicts a step with the settings of a query and the peak of its memory.
pub(crate) fn predict_in(
    recorded: &Step,
    host: &Host<'_>,
    kernels: &Kernels<'_>,
    asked: QueryEcho,
    peak: Option<Peak>,
) -> Prediction {
    let process = asked.process;
    let (mut durations, spread, device) = device_times(recorded, kernels);
    if matches!(kernels, Kernels::Measured) {
        waits::unprofiled(recorded, process, host, &mut durations);
    }
    let (host, slowness) = host_side(recorded, process, host);
    let priced = PricedGraph { graph: &recorded.graph, host, durations, demands: None };
    let spec = memory::spec(recorded, kernels);
    let known = KnownParts { spread, slowness, device, peak, spec: spec.as_ref(), asked };
    Prediction::new(&priced, known, |evidence| doubt::all(recorded, kernels, evidence))
}

/// Parts of a prediction that are known before the simulation.
pub(crate) struct KnownParts<'p> {
    /// Half-width of all device time together.
    pub spread: f64,
    /// Ratio of the recording's host gaps to the profile's.
    pub slowness: Option<f64>,
    /// Launches and their prices, from a device profile.
    pub device: Option<PricedLaunches>,
    /// Peak device memory.
    pub peak: Option<Peak>,
    /// The GPU, for the size of its memory.
    pub spec: Option<&'p DeviceSpec>,
    /// Settings of the prediction.
    pub asked: QueryEcho,
}

impl Prediction {
    /// Simulates a priced step and explains it. `doubts` returns the doubts about the simulated step; the interval is widened by them. Where
    /// the GPU has less memory than the peak, that doubt comes first.
    pub(crate) fn new(
        priced: &PricedGraph<'_>,
        known: KnownParts<'_>,
        doubts: impl FnOnce(&Evidence<'_>) -> Vec<Doubt>,
    ) -> Prediction {
        let KnownParts { spread, slowness, device, peak, spec, asked } = known;
        let graph = priced.graph;
        // Runs before anything is kept, because it needs as much memory as the simulation.
        let replay = SelfCheck::replay(graph);
        let Simulation { timeline, interval } = Simulation::from_priced(priced, spread);
        let step = timeline.period;
        // Computed before the path, which is kept: both of them need that much memory for a while.
        let idle_by_cause = Idle::measure(graph, &timeline);
        let slack = Slack::measure(graph, &timeline);
        let path = critical::path(graph, &timeline);
        let found = priced.host.found;
        let mut doubts = doubts(&Evidence {
            device: device.as_ref(),
            guessed: found.guessed,
            step,
            replay: replay.as_ref(),
        });
        doubt::memory::first(&mut doubts, peak.as_ref(), spec);
        Prediction {
            step,
            interval: doubt::widened(&doubts, step, interval),
            doubts,
            active: timeline.active(),
            idle: idle_by_cause.iter().map(|(_, time)| time).sum(),
            idle_by_cause,
            slack,
            ops: breakdown::by_op(graph, &timeline, &path),
            kernels: breakdown::by_kernel(graph, &priced.durations),
            phases: breakdown::by_phase(graph, &timeline),
            annotations: breakdown::by_annotation(graph, &timeline),
            found,
            slowness,
            path,
            timeline,
            device,
            replay,
            fits: memory::fits(peak.as_ref(), spec),
            peak,
            asked,
        }
    }
}

/// Predicts the step time by a baseline method.
pub fn baseline(recorded: &Step, kernels: &Kernels<'_>, baseline: Baseline) -> Nanos {
    baseline_in(recorded, recorded.process, kernels, baseline)
}

/// Predicts the step time by a baseline method in a process of the given state.
pub(crate) fn baseline_in(
    recorded: &Step,
    process: Process,
    kernels: &Kernels<'_>,
    baseline: Baseline,
) -> Nanos {
    let graph = &recorded.graph;
    let (durations, _, _) = device_times(recorded, kernels);
    match baseline {
        Baseline::Paper => {
            let (profiler, _) = own_constants(process);
            baselines::paper(graph, &durations, &Overheads::measured(graph, &profiler))
        }
        Baseline::PaperPublished => baselines::paper(graph, &durations, &Overheads::published(graph)),
        Baseline::KernelSum => baselines::kernel_sum(&durations),
    }
}

/// A simulated step without an explanation.
pub(crate) struct Simulation {
    /// Times of all events.
    pub timeline: Timeline,
    /// Interval of the step time, before doubts.
    pub interval: [Nanos; 2],
}

impl Simulation {
    /// Simulates a priced step. `spread` is the half-width of all device time together.
    pub(crate) fn from_priced(priced: &PricedGraph<'_>, spread: f64) -> Simulation {
        let timeline = Timeline::simulate(priced);
        let interval = interval(priced, &timeline, spread);
        Simulation { timeline, interval }
    }
}

/// Interval of the step with the host and the kernels at either end of their own intervals, widened by the variation of the next run.
fn interval(priced: &PricedGraph<'_>, timeline: &Timeline, device: f64) -> [Nanos; 2] {
    let step = timeline.period;
    let low = at_speeds(priced, (-priced.host.spread).exp(), (-device).exp());
    let high = at_speeds(priced, priced.host.spread.exp(), device.exp());
    about(step, [low, high], next_run(timeline))
}

/// Widens an interval around a step by the variation of the next run (relative half-width). The lower side stays above
/// zero: if the step minus a half-width would not, the step is divided by a factor instead.
pub(crate) fn about(step: Nanos, [low, high]: [Nanos; 2], next_run: f64) -> [Nanos; 2] {
    let differs = next_run * step.0 as f64;
    let widen = |side: Nanos| Nanos((side.0 as f64).hypot(differs) as i64);
    let lower = step - widen(step - low);
    if lower > Nanos::ZERO || step <= Nanos::ZERO {
        return [lower, step + widen(high - step)];
    }
    let ratio = (low.0.max(1) as f64 / step.0 as f64).ln().hypot(next_run);
    [scale(step, (-ratio).exp()), step + widen(high - step)]
}

/// Half-width (relative, 90 %) of the step time in another process of the same script on the same machine.
pub(crate) fn next_run(timeline: &Timeline) -> f64 {
    let busy = timeline.active().0 as f64 / timeline.period.0.max(1) as f64;
    let NextRun { device, host, .. } = uncertainty().next_run;
    device.hypot(host * (1.0 - busy).clamp(0.0, 1.0))
}

/// Step time with all host times and all device times scaled by these factors.
pub(crate) fn at_speeds(priced: &PricedGraph<'_>, host: f64, device: f64) -> Nanos {
    let mut other = priced.clone();
    other.host.gaps.iter_mut().for_each(|gap| *gap = scale(*gap, host));
    other.durations.iter_mut().for_each(|time| *time = scale(*time, device));
    Timeline::simulate(&other).period
}

pub(crate) fn scale(time: Nanos, factor: f64) -> Nanos {
    Nanos((time.0 as f64 * factor).round() as i64)
}
