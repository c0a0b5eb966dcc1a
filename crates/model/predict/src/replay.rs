//! Self-check of a recording: the profiled step as simulated, compared with the profiled step as recorded.

use steptime_cost::{HostCosts, PricedGraph, Process};
use steptime_graph::{Clock, StepGraph, median};
use steptime_sim::{Timeline, replay_recorded};
use steptime_trace::Nanos;

use crate::shipped_host::own_constants;

/// The profiled step, simulated with the profiler's cost left in and as recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfCheck {
    /// Median period by the marks of the recording; for a single step its mark, or the time from its first event to the end of all its
    /// launches.
    pub recorded: Nanos,
    /// Simulated time of the typical step, from which predictions are made. For a single step, of the step itself.
    pub typical: Nanos,
    /// Relative error of every recorded step simulated with its own times: the error of the simulator.
    pub each_error: f64,
    /// Median device active time of a step as recorded.
    pub active_recorded: Nanos,
    /// Median device active time of the simulated typical step.
    pub active_typical: Nanos,
    /// Half the interquartile range of the recorded periods, relative; zero for one step.
    pub unrest: f64,
    /// Median period by the host's marks, where the device is the better clock.
    pub by_host: Option<Nanos>,
    /// Whether a single step was recorded, which has no period.
    pub single: bool,
}

impl SelfCheck {
    /// Replays a recording; `None` where nothing was measured.
    pub fn replay(graph: &StepGraph) -> Option<SelfCheck> {
        if graph.samples.is_empty() || graph.marks.is_empty() {
            return None;
        }
        let (_, coupling) = own_constants(Process::Profiled);
        let host = HostCosts::profiled(graph, &coupling);
        let profiled = PricedGraph::measured(graph, host);
        let replay = replay_recorded(graph, &profiled)?;
        let marked = graph.witness.period.filter(|_| graph.samples.clock() == Clock::Host);
        let recorded =
            marked.or(graph.samples.median_period()).filter(|_| !replay.single).unwrap_or(replay.measured);
        let timeline = Timeline::simulate(&profiled);
        // A single step is as long as its mark, unless the device finishes later.
        let mark = graph.samples.steps().next().and_then(|step| graph.samples.host_period(step));
        let (recorded, typical, active_typical) = match mark.filter(|&mark| mark >= replay.measured) {
            Some(mark) if replay.single => (mark, timeline.period, timeline.active()),
            _ if replay.single => (replay.measured, replay.simulated, replay.active_simulated),
            _ => (recorded, timeline.period, timeline.active()),
        };
        Some(SelfCheck {
            recorded,
            typical,
            each_error: replay.error(),
            active_recorded: replay.active,
            active_typical,
            unrest: unrest(graph),
            by_host: by_host(graph),
            single: replay.single,
        })
    }

    /// Relative error of the typical step's period.
    pub fn error(&self) -> f64 {
        error(self.typical, self.recorded)
    }

    /// Relative error of the typical step's device active time.
    pub fn active_error(&self) -> f64 {
        error(self.active_typical, self.active_recorded)
    }
}

fn error(simulated: Nanos, recorded: Nanos) -> f64 {
    if recorded.0 > 0 { simulated.0 as f64 / recorded.0 as f64 - 1.0 } else { 0.0 }
}

fn by_host(graph: &StepGraph) -> Option<Nanos> {
    let samples = &graph.samples;
    let mut periods: Vec<Nanos> = samples.steps().filter_map(|step| samples.host_period(step)).collect();
    if samples.clock() == Clock::Host { None } else { median(&mut periods) }
}

fn unrest(graph: &StepGraph) -> f64 {
    let samples = &graph.samples;
    let mut periods: Vec<Nanos> = samples.steps().filter_map(|step| samples.period(step)).collect();
    periods.sort_unstable();
    let at = |share: f64| periods[((periods.len() - 1) as f64 * share).round() as usize].0 as f64;
    if periods.len() < 2 || at(0.5) <= 0.0 { 0.0 } else { (at(0.75) - at(0.25)) / at(0.5) / 2.0 }
}
