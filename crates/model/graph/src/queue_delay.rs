//! Delay with which a queued activity begins: after the activity before it on its stream, and after those it
//! waits for through events.
//!
//! It is about a microsecond, and more after a memset or with other active streams. A wait for an event that was not recorded
//! is part of the measured delay.

use steptime_trace::{Nanos, StreamId};
use typed_index_collections::TiVec;

use crate::graph::StepGraph;
use crate::ids::ActivityId;
use crate::samples::median;

/// Minimum time between the end of the launch and the time when the stream is free, for an activity that counts as queued.
const CLEARLY: Nanos = Nanos(5_000);
/// Minimum number of queued samples.
const ENOUGH: usize = 3;

/// Returns the median delay of each activity over the steps in which it was queued; `None` if they are too few.
pub(crate) fn delays(graph: &StepGraph) -> TiVec<ActivityId, Option<Nanos>> {
    let samples = &graph.samples;
    let mut delays: TiVec<ActivityId, Vec<Nanos>> = vec![Vec::new(); graph.activities.len()].into();
    let mut last_end: TiVec<StreamId, Option<Nanos>> = vec![None; graph.streams.len()].into();
    for step in samples.steps() {
        let all = graph.activities.keys();
        let mut order: Vec<(Nanos, ActivityId)> =
            all.filter_map(|a| Some((samples.activity_start(step, a)?, a))).collect();
        order.sort_unstable();
        for (start, activity) in order {
            let row = &graph.activities[activity];
            let launched = samples.mark(step, graph.calls[row.call].end);
            let before = last_end[row.stream];
            let awaited = graph
                .waits_of(activity)
                .filter_map(|wait| {
                    let step = if wait.wraps { (step.0 > 0).then(|| step.previous())? } else { step };
                    samples.activity_end(step, wait.from)
                })
                .filter(|&end| end <= start)
                .max();
            if let (Some(launched), Some(ready)) = (launched, before.max(awaited))
                && launched + CLEARLY < ready
            {
                delays[activity].push((start - ready).max(Nanos::ZERO));
            }
            last_end[row.stream] = before.max(samples.activity_end(step, activity));
        }
    }
    delays.iter_mut().map(|times| if times.len() < ENOUGH { None } else { median(times) }).collect()
}
