//! The delay with which a queued activity begins: after the one before it on its stream, and after those it
//! waits for through events.
//!
//! It is about a microsecond, more after a memset or beside other streams. What an event that was not seen
//! adds to it is kept as part of the delay: the replay stays true to what was measured.

use steptime_trace::Nanos;

use crate::graph::StepGraph;
use crate::samples::median;

/// An activity was queued if its launch was over this long before the device could take it up.
const CLEARLY: Nanos = Nanos(5_000);
/// Fewer queued samples than this say nothing.
const ENOUGH: usize = 3;

/// The median delay of each activity over the steps in which it was queued; `None` where it seldom was.
pub(crate) fn delays(graph: &StepGraph) -> Vec<Option<Nanos>> {
    let samples = &graph.samples;
    let count = graph.activities.len();
    let mut delays: Vec<Vec<Nanos>> = vec![Vec::new(); count];
    let mut last_end: Vec<Option<Nanos>> = vec![None; graph.streams.len()];
    for step in 0..samples.steps() {
        let mut order: Vec<(Nanos, u32)> =
            (0..count as u32).filter_map(|a| Some((samples.activity_start(step, a)?, a))).collect();
        order.sort_unstable();
        for (start, activity) in order {
            let row = &graph.activities[activity as usize];
            let launched = samples.mark(step, graph.calls[row.call as usize].end);
            let before = last_end[row.stream as usize];
            let awaited = graph
                .waits_of(activity)
                .filter_map(|wait| {
                    samples.activity_end(step.checked_sub(usize::from(wait.wraps))?, wait.from)
                })
                .filter(|&end| end <= start)
                .max();
            if let (Some(launched), Some(ready)) = (launched, before.max(awaited))
                && launched + CLEARLY < ready
            {
                delays[activity as usize].push((start - ready).max(Nanos::ZERO));
            }
            last_end[row.stream as usize] = before.max(samples.activity_end(step, activity));
        }
    }
    delays.iter_mut().map(|times| if times.len() < ENOUGH { None } else { median(times) }).collect()
}
