//! Launches that found their stream's queue full. Their wait is not a cost of the host.

use steptime_graph::{CallId, StepGraph, StepId, StreamId, TiVec};
use steptime_trace::Nanos;

use super::host_device_delays::Coupling;

/// Number of launches below its depth from which a queue counts as full, because the driver reserves some.
const RESERVE: usize = 24;

/// Launches, step by step, that were made into a full queue.
#[derive(Debug, Clone)]
pub struct Stalls {
    calls: usize,
    full: Vec<bool>,
}

impl Stalls {
    /// Counts, for every launch, the activities of its stream that were launched before and not yet done.
    /// `None` if no queue ever filled up, which is usual.
    pub fn find(graph: &StepGraph, coupling: &Coupling) -> Option<Stalls> {
        let depth = (coupling.queue_depth as usize).saturating_sub(RESERVE).max(1);
        let samples = &graph.samples;
        if samples.steps().len() * graph.activities.len() < depth {
            return None;
        }
        let order = graph.calls_by_time();
        let mut full = vec![false; samples.steps().len() * graph.calls.len()];
        // Ends of all activities launched so far, stream by stream; they rise, because a stream is a queue.
        let mut ends: TiVec<StreamId, Vec<Nanos>> = vec![Vec::new(); graph.streams.len()].into();
        for step in samples.steps() {
            for &call in &order {
                let row = &graph.calls[call];
                let Some(begin) = samples.mark(step, row.begin) else { continue };
                if let Some(first) = row.activities().next() {
                    let queue = &ends[graph.activities[first].stream];
                    let waiting = queue.len() - queue.partition_point(|&end| end <= begin);
                    full[step.index() * graph.calls.len() + call.index()] = waiting >= depth;
                }
                for activity in row.activities() {
                    let queue = &mut ends[graph.activities[activity].stream];
                    if let Some(end) = samples.activity_end(step, activity) {
                        queue.push(queue.last().map_or(end, |&last| end.max(last)));
                    }
                }
            }
        }
        full.contains(&true).then_some(Stalls { calls: graph.calls.len(), full })
    }

    /// Whether a call of a step was launched into a full queue.
    pub fn at(&self, step: StepId, call: CallId) -> bool {
        self.full[step.index() * self.calls + call.index()]
    }
}
