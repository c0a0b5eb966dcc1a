//! Streams: what is launched anew goes to the one that most runs on; copies for the next step have one of their own, which
//! the next step waits for before all else.

use steptime_graph::{ActivityId, StepGraph, StreamDependency, StreamId, TiVec};
use steptime_trace::Stream;

use crate::step::Step;

/// Adds a stream for what a step copies for the next one; `None` where it copies nothing ahead.
pub(super) fn ahead(step: &Step, graph: &mut StepGraph) -> Option<StreamId> {
    if !step.running().iter().any(|&op| step.ops[op].ahead) {
        return None;
    }
    let device = graph.streams.first().map_or(0, |stream| stream.device);
    let last = graph.streams.iter().map(|stream| stream.stream).max().unwrap_or(0);
    Some(graph.streams.push_and_get_key(Stream { device, stream: last + 1 }))
}

/// The first activity that is not copied ahead waits for the last that was, in the step before.
pub(super) fn wait(graph: &mut StepGraph, ahead: StreamId) {
    let mut last =
        graph.activities.iter_enumerated().filter(|(_, row)| row.stream == ahead).map(|(at, _)| at);
    let launched = graph.calls_by_hand_off().into_iter().flat_map(|call| graph.calls[call].activities());
    let first = launched.into_iter().find(|&at: &ActivityId| graph.activities[at].stream != ahead);
    if let (Some(from), Some(to)) = (last.next_back(), first) {
        let place = graph.waits.partition_point(|wait| wait.to <= to);
        graph.waits.insert(place, StreamDependency { from, to, inferred: false, wraps: true });
    }
}

/// The stream that most of a step runs on.
pub(super) fn busiest(graph: &StepGraph) -> StreamId {
    let mut count: TiVec<StreamId, usize> = vec![0; graph.streams.len()].into();
    for activity in &graph.activities {
        count[activity.stream] += 1;
    }
    count
        .iter_enumerated()
        .max_by_key(|(at, count)| (**count, std::cmp::Reverse(*at)))
        .map_or(StreamId(0), |(at, _)| at)
}
