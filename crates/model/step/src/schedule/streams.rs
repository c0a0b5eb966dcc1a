//! Streams: new launches go to the busiest one, ops moved by a rule to others. Copies for the next step have a separate stream, which the next step
//! waits for first.

use steptime_graph::{ActivityId, ApiKind, StepGraph, StreamDependency, StreamId, TiVec};
use steptime_trace::Stream;

use crate::ids::OpId;
use crate::step::{Op, StepIr};

/// Streams in addition to those of the recording.
pub(super) struct ExtraStreams {
    /// Stream of copies for the next step; `None` where there are none.
    pub ahead: Option<StreamId>,
    /// Streams to which rules moved ops: number 1 first.
    beside: Vec<StreamId>,
}

impl ExtraStreams {
    /// Adds the streams that a step needs.
    pub fn add_to(step: &StepIr, graph: &mut StepGraph) -> ExtraStreams {
        let device = graph.streams.first().map_or(0, |stream| stream.device);
        let last = graph.streams.iter().map(|stream| stream.stream).max().unwrap_or(0);
        let mut stream = last;
        let mut add = || {
            stream += 1;
            graph.streams.push_and_get_key(Stream { device, stream })
        };
        let running = step.running();
        let ahead = running.iter().any(|&op| step.ops[op].ahead).then(&mut add);
        let most = running.iter().map(|&op| step.ops[op].stream).max().unwrap_or(0);
        ExtraStreams { ahead, beside: (0..most).map(|_| add()).collect() }
    }

    /// The stream to which an op was moved; `None` for one that stays.
    pub fn stream_of(&self, op: &Op) -> Option<StreamId> {
        let beside = || self.beside.get((op.stream as usize).checked_sub(1)?).copied();
        self.ahead.filter(|_| op.ahead).or_else(beside)
    }

    /// Streams by the numbers that rules use.
    pub fn numbered(&self, main: StreamId) -> Vec<StreamId> {
        std::iter::once(main).chain(self.beside.iter().copied()).collect()
    }
}

/// Adds waits for the events inserted by rules: the next activity of a stream waits for the last earlier activity of the other, or for its last one
/// of the previous step where it has none yet.
pub(super) fn wait_for_events(
    step: &StepIr,
    ops: &TiVec<steptime_graph::OpId, OpId>,
    graph: &mut StepGraph,
    streams: &[StreamId],
) {
    if streams.len() < 2 {
        return;
    }
    let calls = graph.calls_by_hand_off();
    let mut last: TiVec<StreamId, Option<ActivityId>> = vec![None; graph.streams.len()].into();
    for activity in calls.iter().flat_map(|&call| graph.calls[call].activities()) {
        last[graph.activities[activity].stream] = Some(activity);
    }
    // The last activity of each stream, and whether it is of the previous step.
    let mut tails: TiVec<StreamId, _> = last.into_iter().map(|last| last.map(|at| (at, true))).collect();
    let mut waiting: TiVec<StreamId, Vec<(ActivityId, bool)>> = vec![Vec::new(); graph.streams.len()].into();
    for call in calls {
        let row = &graph.calls[call];
        if row.kind == ApiKind::StreamWait
            && let Some(waits) = row.op.and_then(|op| step.ops[ops[op]].waits)
        {
            let stream = |number: u32| streams[number as usize];
            waiting[stream(waits.waiting)].extend(tails[stream(waits.awaited)]);
        }
        for to in row.activities() {
            let stream = graph.activities[to].stream;
            tails[stream] = Some((to, false));
            let awaited = waiting[stream].drain(..);
            graph.waits.extend(awaited.map(|(from, wraps)| StreamDependency {
                from,
                to,
                inferred: false,
                wraps,
            }));
        }
    }
    graph.waits.sort_by_key(|wait| (wait.to, wait.from, wait.wraps));
    graph.waits.dedup_by_key(|wait| (wait.to, wait.from, wait.wraps));
}

/// Makes the first activity that is not copied ahead wait for the last one that was, in the previous step.
pub(super) fn wait_for_copies(graph: &mut StepGraph, ahead: StreamId) {
    let mut last =
        graph.activities.iter_enumerated().filter(|(_, row)| row.stream == ahead).map(|(at, _)| at);
    let launched = graph.calls_by_hand_off().into_iter().flat_map(|call| graph.calls[call].activities());
    let first = launched.into_iter().find(|&at: &ActivityId| graph.activities[at].stream != ahead);
    if let (Some(from), Some(to)) = (last.next_back(), first) {
        let place = graph.waits.partition_point(|wait| wait.to <= to);
        graph.waits.insert(place, StreamDependency { from, to, inferred: false, wraps: true });
    }
}

/// The stream with the most activities.
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
