//! The device if the end of an activity is not known at its launch: kernels of several streams share it, or it waits
//! for other ranks. Launched activities wait in queues, and are simulated once the end of one of them is queried.

use std::collections::VecDeque;

use steptime_cost::{Demand, Demands};
use steptime_graph::{ActivityId, RendezvousId, StepGraph, StreamId, TiSlice, TiVec};
use steptime_trace::Nanos;

use crate::cause::ActivityCause;
use crate::sharing::RunningKernels;
use crate::stream::{NEVER, Stream, UNKNOWN};

/// An activity in the queue of its stream.
#[derive(Debug, Clone, Copy)]
struct QueuedActivity {
    activity: ActivityId,
    ready: Nanos,
    delay: Nanos,
    duration: Nanos,
    slot: usize,
}

/// Activities that were launched and have not ended.
#[derive(Debug, Clone)]
pub(crate) struct Device<'g> {
    graph: &'g StepGraph,
    /// Demands of kernels on the device, if they share it.
    demands: Option<&'g Demands>,
    /// Rendezvous at which activities meet those of other ranks.
    meets: Option<&'g TiSlice<ActivityId, Option<RendezvousId>>>,
    queues: TiVec<StreamId, VecDeque<QueuedActivity>>,
    /// Whether the first of a queue runs.
    runs: TiVec<StreamId, bool>,
    /// Last activity of each stream, and whether it was of this step.
    last: TiVec<StreamId, Option<(ActivityId, bool)>>,
    running: RunningKernels<StreamId>,
    /// Arrivals at rendezvous since the last call of [`Device::arrived`]: activity and time.
    arrived: Vec<(RendezvousId, ActivityId, Nanos)>,
}

/// Beginnings and ends of activities, and their causes.
pub(crate) struct Times<'t> {
    pub streams: &'t mut TiSlice<StreamId, Stream>,
    pub starts: &'t mut TiSlice<ActivityId, Nanos>,
    pub ends: &'t mut TiSlice<ActivityId, Nanos>,
    pub ends_before: &'t TiSlice<ActivityId, Nanos>,
    pub causes: &'t mut TiSlice<ActivityId, ActivityCause>,
}

impl<'g> Device<'g> {
    pub fn new(graph: &'g StepGraph, demands: Option<&'g Demands>) -> Device<'g> {
        Device {
            graph,
            demands,
            meets: None,
            arrived: Vec::new(),
            queues: vec![VecDeque::new(); graph.streams.len()].into(),
            runs: vec![false; graph.streams.len()].into(),
            last: vec![None; graph.streams.len()].into(),
            running: match demands {
                Some(demands) if demands.nodes => RunningKernels::on(demands.multiprocessors).of_nodes(),
                _ => RunningKernels::on(demands.map_or(1, |demands| demands.multiprocessors)),
            },
        }
    }

    /// Device of one of several ranks.
    pub fn among(
        graph: &'g StepGraph,
        demands: Option<&'g Demands>,
        meets: &'g TiSlice<ActivityId, Option<RendezvousId>>,
    ) -> Device<'g> {
        Device { meets: Some(meets), ..Device::new(graph, demands) }
    }

    /// Returns the arrivals at rendezvous since the last call.
    pub fn arrived(&mut self) -> Vec<(RendezvousId, ActivityId, Nanos)> {
        std::mem::take(&mut self.arrived)
    }

    /// Whether an activity's end is known at its launch: no predecessor is pending, and it meets no other rank.
    pub fn is_at_once(&self, activity: ActivityId, ends: &TiSlice<ActivityId, Nanos>) -> bool {
        self.demands.is_none()
            && self.meets.is_none_or(|meets| meets[activity].is_none())
            && self.queues[self.graph.activities[activity].stream].is_empty()
            && self.graph.waits_of(activity).all(|wait| wait.wraps || ends[wait.from] != UNKNOWN)
    }

    /// Records an activity that ran at once.
    pub fn ran(&mut self, activity: ActivityId) {
        self.last[self.graph.activities[activity].stream] = Some((activity, true));
    }

    /// Ends an activity once all ranks have arrived.
    pub fn leave(&mut self, activity: ActivityId, at: Nanos, times: &mut Times<'_>) {
        self.end(self.graph.activities[activity].stream, at, times);
    }

    /// Begins a step: all earlier launches now belong to the step before.
    pub fn begin_step(&mut self) {
        self.last.iter_mut().flatten().for_each(|(_, this_step)| *this_step = false);
    }

    /// Puts an activity into the queue of its stream.
    pub fn launch(
        &mut self,
        activity: ActivityId,
        [ready, delay, duration]: [Nanos; 3],
        times: &mut Times<'_>,
    ) {
        let stream = self.graph.activities[activity].stream;
        let slot = times.streams[stream].queue(activity);
        times.ends[activity] = UNKNOWN;
        self.queues[stream].push_back(QueuedActivity { activity, ready, delay, duration, slot });
    }

    /// Whether all activities launched into a stream have ended.
    pub fn is_idle(&self, stream: StreamId) -> bool {
        self.queues[stream].is_empty()
    }

    /// Advances by one change; returns `false` if there is none.
    pub fn go_on(&mut self, times: &mut Times<'_>) -> bool {
        let mut first: Option<(Nanos, StreamId, ActivityCause)> = None;
        for stream in self.queues.keys() {
            let Some(&head) = self.queues[stream].front().filter(|_| !self.runs[stream]) else { continue };
            let Some((start, cause)) = self.start(stream, head, times) else { continue };
            if let Some(rendezvous) = self.meets.and_then(|meets| meets[head.activity]) {
                times.starts[head.activity] = start;
                times.causes[head.activity] = cause;
                self.runs[stream] = true;
                self.arrived.push((rendezvous, head.activity, start));
                return true;
            }
            if self.demand(head.activity).is_none() {
                times.starts[head.activity] = start;
                times.causes[head.activity] = cause;
                self.end(stream, start + head.duration, times);
                return true;
            }
            // Of equal ones the one that was launched first.
            let place = (start, head.activity);
            if first.is_none_or(|(earliest, stream, _)| place < (earliest, self.queues[stream][0].activity)) {
                first = Some((start, stream, cause));
            }
        }
        let change = self.running.next_change();
        match first {
            Some((start, stream, cause)) if change.is_none_or(|change| start < change) => {
                self.begin(stream, start, cause, times);
                true
            }
            _ => {
                let ended = self.running.change();
                let at = self.running.now();
                ended.into_iter().for_each(|stream| self.end(stream, at, times));
                change.is_some()
            }
        }
    }

    fn demand(&self, activity: ActivityId) -> Option<Demand> {
        self.demands.and_then(|demands| demands.of[activity])
    }

    fn begin(&mut self, stream: StreamId, start: Nanos, cause: ActivityCause, times: &mut Times<'_>) {
        let Some(&head) = self.queues[stream].front() else { return };
        let Some(demand) = self.demand(head.activity) else { return };
        let start = start.max(self.running.now());
        times.starts[head.activity] = start;
        times.causes[head.activity] = cause;
        self.runs[stream] = true;
        self.running.begin(stream, start, head.duration, demand);
    }

    fn end(&mut self, stream: StreamId, at: Nanos, times: &mut Times<'_>) {
        self.runs[stream] = false;
        if let Some(head) = self.queues[stream].pop_front() {
            times.ends[head.activity] = at;
            times.streams[stream].done(head.slot, at);
            self.last[stream] = Some((head.activity, true));
        }
    }

    /// Returns the earliest beginning of the first in a queue, and its cause; `None` while it waits for an unfinished activity.
    fn start(
        &self,
        stream: StreamId,
        head: QueuedActivity,
        times: &Times<'_>,
    ) -> Option<(Nanos, ActivityCause)> {
        let (mut start, mut cause) = (head.ready, ActivityCause::Launch);
        let free = times.streams[stream].free;
        if let Some((last, this_step)) = self.last[stream].filter(|_| free + head.delay > start) {
            let why = if this_step { ActivityCause::Stream } else { ActivityCause::StreamBefore };
            (start, cause) = (free + head.delay, why(last));
        }
        for wait in self.graph.waits_of(head.activity) {
            let end = if wait.wraps { times.ends_before[wait.from] } else { times.ends[wait.from] };
            if end == UNKNOWN {
                return None;
            }
            if end != NEVER && end + head.delay > start {
                let why = if wait.wraps { ActivityCause::EventBefore } else { ActivityCause::Event };
                (start, cause) = (end + head.delay, why(wait.from));
            }
        }
        Some((start, cause))
    }
}
