//! Replays the recorded steps with their recorded times: the difference is the simulator's own error.

use steptime_cost::PricedGraph;
use steptime_cost::host::recorded_gaps::waits_for_device;
use steptime_graph::{Clock, MarkId, StepGraph, StepId, TiVec, median, union};
use steptime_trace::Nanos;

use crate::engine::Engine;

/// Times of the recorded steps, replayed with the profiler's cost left in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// Median period in simulated time; for a single step, from its first mark to the end of all its launches.
    pub simulated: Nanos,
    /// The same time in the recording.
    pub measured: Nanos,
    /// Median device active time of a step in simulated time.
    pub active_simulated: Nanos,
    /// Median device active time of a step in the recording.
    pub active: Nanos,
    /// Whether a single step was recorded: then there is no period, and the step's own span is used instead.
    pub single: bool,
}

impl Replay {
    /// Returns the relative error of the period.
    pub fn error(&self) -> f64 {
        ratio(self.simulated, self.measured)
    }

    /// Returns the relative error of the device active time.
    pub fn active_error(&self) -> f64 {
        ratio(self.active_simulated, self.active)
    }
}

fn ratio(simulated: Nanos, measured: Nanos) -> f64 {
    if measured.0 > 0 { simulated.0 as f64 / measured.0 as f64 - 1.0 } else { 0.0 }
}

/// Replays the recorded steps, each with its own gaps and durations and with the profiler's cost left in. The difference
/// to the measured period is the simulator's own error.
///
/// Returns `None` if nothing was recorded. Missing measurements of a step are taken from `typical`.
pub fn replay_recorded(graph: &StepGraph, typical: &PricedGraph<'_>) -> Option<Replay> {
    let samples = &graph.samples;
    let steps = samples.steps().len();
    let mut engine = Engine::new(graph, &typical.host);
    let mut gaps = typical.host.gaps.clone();
    let mut durations = typical.durations.clone();
    let waits: TiVec<MarkId, bool> = graph.marks.keys().map(|mark| waits_for_device(graph, mark)).collect();
    let (mut begins, mut ends, mut actives, mut spans) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for step in samples.steps() {
        for (at, mark) in graph.marks.iter_enumerated() {
            gaps[at] = if waits[at] {
                typical.host.gaps[at]
            } else {
                samples.gap(step, at, mark).unwrap_or(typical.host.gaps[at])
            };
        }
        for (a, duration) in durations.iter_mut_enumerated() {
            *duration = samples.activity_duration(step, a).unwrap_or(typical.durations[a]);
        }
        engine.step(&gaps, &durations);
        let begin = engine.marks.first().copied()?;
        begins.push(begin);
        ends.push(engine.ends.iter().copied().max().unwrap_or(begin));
        actives.push(active(&engine));
        spans.push(engine.completion() - begin);
    }
    let active_simulated = median(&mut actives)?;
    let active = samples.median_active()?;
    if steps == 1 {
        let (simulated, measured) = (spans[0], span(graph)?);
        return Some(Replay { simulated, measured, active_simulated, active, single: true });
    }
    // A step lasts from its first mark to the first of the next. The first step starts with idle queues.
    let from = usize::from(steps > 2);
    let pairs = (from..steps - 1).filter_map(|at| {
        let step = StepId::from(at);
        if samples.clock() == Clock::Device {
            return Some((ends[at + 1] - ends[at], samples.period(step)?));
        }
        // By the first mark if both steps have it: the simulated beginning is that mark.
        let recorded = match (samples.mark(step, MarkId(0)), samples.mark(step.next(), MarkId(0))) {
            (Some(from), Some(to)) => to - from,
            _ => samples.period(step)?,
        };
        Some((begins[at + 1] - begins[at], recorded))
    });
    let (mut simulated, mut measured): (Vec<Nanos>, Vec<Nanos>) = pairs.unzip();
    let (simulated, measured) = (median(&mut simulated)?, median(&mut measured)?);
    Some(Replay { simulated, measured, active_simulated, active, single: false })
}

/// Returns the time in which any activity of the engine's last step ran.
fn active(engine: &Engine<'_>) -> Nanos {
    let mut spans: Vec<(Nanos, Nanos)> =
        engine.starts.iter().copied().zip(engine.ends.iter().copied()).collect();
    spans.sort_unstable();
    union(&spans)
}

/// Returns the recorded time from the first mark of a single step to the end of all its launches.
fn span(graph: &StepGraph) -> Option<Nanos> {
    let samples = &graph.samples;
    let begin = samples.mark(StepId(0), MarkId(0))?;
    let marks = graph.marks.keys().filter_map(|mark| samples.mark(StepId(0), mark)).max();
    let ends = graph.activities.keys().filter_map(|a| samples.activity_end(StepId(0), a)).max();
    Some(marks.max(ends)? - begin)
}
