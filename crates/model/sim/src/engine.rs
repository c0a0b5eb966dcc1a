//! The discrete-event engine: host threads and device streams, one step after the other.
//!
//! A mark of a host thread is passed one gap after the mark that it waits for. Launches and waits happen at marks and
//! couple threads to streams. Each computed time keeps its *cause*, the last thing it waited for. The causes form the
//! critical path.

mod settle;

use steptime_cost::{HostCosts, PricedGraph};
use steptime_graph::{
    ActivityId, Blocking, CallId, HostThreadId, MarkId, MarkKind, StepGraph, StreamId, StreamSet, TiSlice,
    TiVec,
};
use steptime_trace::Nanos;

use crate::cause::{ActivityCause, MarkCause};
use crate::delays::{Delays, dense};
use crate::device::Device;
use crate::stream::{NEVER, Stream, UNKNOWN};

/// A longer delay between queued activities is a wait for something that was not recorded, not overhead.
const LONGEST_OVERHEAD: Nanos = Nanos(5_000);

/// The engine's state between two steps.
#[derive(Debug, Clone)]
pub struct Engine<'g> {
    graph: &'g StepGraph,
    delays: Delays,
    streams: TiVec<StreamId, Stream>,
    /// Times of this step and of the step before.
    pub(crate) marks: TiVec<MarkId, Nanos>,
    before: TiVec<MarkId, Nanos>,
    pub(crate) starts: TiVec<ActivityId, Nanos>,
    pub(crate) ends: TiVec<ActivityId, Nanos>,
    ends_before: TiVec<ActivityId, Nanos>,
    pub(crate) mark_causes: TiVec<MarkId, MarkCause>,
    pub(crate) activity_causes: TiVec<ActivityId, ActivityCause>,
    /// Where each call that waits may return.
    returns: TiVec<CallId, (Nanos, MarkCause)>,
    /// For calls whose activities start before the call ends: the earliest start, from the beginning of the call.
    leads: TiVec<CallId, Option<Nanos>>,
    /// How long after its stream is free an activity of a captured graph begins.
    between: TiVec<ActivityId, Option<Nanos>>,
    /// What was launched and has not ended, where kernels share the device.
    device: Option<Device<'g>>,
}

impl<'g> Engine<'g> {
    /// An engine before the first step: all streams idle, all threads at time zero.
    pub fn new(graph: &'g StepGraph, host: &HostCosts) -> Engine<'g> {
        let delays = Delays::of(host);
        Engine {
            graph,
            delays,
            streams: vec![Stream::idle(delays.depth); graph.streams.len()].into(),
            // The step before the first is over at time zero.
            marks: vec![Nanos::ZERO; graph.marks.len()].into(),
            before: vec![NEVER; graph.marks.len()].into(),
            starts: vec![NEVER; graph.activities.len()].into(),
            ends: vec![NEVER; graph.activities.len()].into(),
            ends_before: vec![NEVER; graph.activities.len()].into(),
            mark_causes: vec![MarkCause::Host; graph.marks.len()].into(),
            activity_causes: vec![ActivityCause::Launch; graph.activities.len()].into(),
            returns: vec![(NEVER, MarkCause::Host); graph.calls.len()].into(),
            leads: dense(&host.captured.leads, graph.calls.len()),
            between: dense(&host.captured.between, graph.activities.len()),
            device: None,
        }
    }

    /// An engine before the first step of a priced graph, whose kernels share the device where that is known.
    pub(crate) fn of(priced: &'g PricedGraph<'_>) -> Engine<'g> {
        let device = priced.demands.as_ref().map(|demands| Device::new(priced.graph, demands));
        Engine { device, ..Engine::new(priced.graph, &priced.host) }
    }

    /// Runs one step. `gaps` has the host time before each mark, `durations` each activity's time.
    pub fn step(&mut self, gaps: &TiSlice<MarkId, Nanos>, durations: &TiSlice<ActivityId, Nanos>) {
        std::mem::swap(&mut self.marks, &mut self.before);
        self.marks.raw.fill(NEVER);
        self.ends_before.raw.copy_from_slice(&self.ends.raw);
        self.streams.iter_mut().for_each(Stream::begin_step);
        self.device.iter_mut().for_each(Device::begin_step);
        let graph = self.graph;
        let mut next: TiVec<HostThreadId, MarkId> = graph.threads.iter().map(|t| t.first_mark).collect();
        while let Some((thread, mut when)) = self.earliest(&next, gaps) {
            let end = graph.threads[thread].end_mark;
            let mut mark = next[thread];
            // A thread runs on until it launches or waits, or until its next mark waits for another thread.
            loop {
                let visible = self.pass(mark, when, durations);
                let ahead = mark.next();
                if visible || ahead == end || graph.marks[ahead].after != mark || graph.marks[ahead].wraps {
                    next[thread] = ahead;
                    break;
                }
                let (own, let_go) = (self.marks[mark], self.marks[mark] + gaps[ahead]);
                when = if own > let_go { (own, MarkCause::Busy) } else { (let_go, MarkCause::Host) };
                mark = ahead;
            }
        }
        self.settle(|_| false);
    }

    /// The thread whose next mark can be passed first; when, and why then.
    fn earliest(
        &self,
        next: &TiSlice<HostThreadId, MarkId>,
        gaps: &TiSlice<MarkId, Nanos>,
    ) -> Option<(HostThreadId, (Nanos, MarkCause))> {
        let graph = self.graph;
        next.keys()
            .filter(|&t| next[t] < graph.threads[t].end_mark)
            .filter_map(|t| Some((t, self.candidate(next[t], gaps)?)))
            .min_by_key(|&(t, (time, _))| (time, t))
    }

    /// When a mark could be passed if there were no device, and why; `None` until the mark that it waits for has passed.
    fn candidate(&self, mark: MarkId, gaps: &TiSlice<MarkId, Nanos>) -> Option<(Nanos, MarkCause)> {
        let row = &self.graph.marks[mark];
        let from = if row.wraps { self.before[row.after] } else { self.marks[row.after] };
        if from == NEVER {
            return None;
        }
        let let_go = from + gaps[mark];
        let own = self.previous_on_thread(mark);
        Some(if own > let_go { (own, MarkCause::Busy) } else { (let_go, MarkCause::Host) })
    }

    fn previous_on_thread(&self, mark: MarkId) -> Nanos {
        let thread = &self.graph.threads[self.graph.marks[mark].thread];
        if mark == thread.first_mark {
            self.before[thread.end_mark.previous()]
        } else {
            self.marks[mark.previous()]
        }
    }

    /// Passes a mark, at its [`Engine::candidate`] if no device is in the way. Returns whether other threads can see what
    /// happened.
    fn pass(
        &mut self,
        mark: MarkId,
        (mut time, mut cause): (Nanos, MarkCause),
        durations: &TiSlice<ActivityId, Nanos>,
    ) -> bool {
        let mut visible = false;
        match self.graph.marks[mark].kind {
            MarkKind::CallBegin(call) => {
                visible = self.begin_call(call, time, durations);
            }
            MarkKind::CallEnd(call) => {
                let (back, why) = self.returns[call];
                if back > time {
                    (time, cause) = (back, why);
                }
                self.returns[call] = (NEVER, MarkCause::Host);
                let row = &self.graph.calls[call];
                let launches = row.blocking == Blocking::Never && self.leads[call].is_none();
                if launches && row.has_activities() {
                    self.settle(|engine| engine.queue_full_until(row.first_activity) != UNKNOWN);
                    let full = self.queue_full_until(row.first_activity);
                    if full > time {
                        let stream = self.graph.activities[row.first_activity].stream;
                        (time, cause) = (full, self.streams[stream].last_cause());
                    }
                    for activity in row.activities() {
                        self.launch(activity, time + self.delays.launch, durations);
                    }
                    visible = true;
                }
            }
            MarkKind::OpBegin(_) | MarkKind::OpEnd(_) => {}
        }
        self.marks[mark] = time;
        self.mark_causes[mark] = cause;
        visible
    }

    /// Begins a call. If it waits, notes when it may return; a chunked copy starts on the device.
    fn begin_call(&mut self, call: CallId, time: Nanos, durations: &TiSlice<ActivityId, Nanos>) -> bool {
        let row = self.graph.calls[call];
        let back = match row.blocking {
            Blocking::Never => {
                let Some(lead) = self.leads[call] else { return false };
                for activity in row.activities() {
                    self.launch(activity, time + lead, durations);
                }
                return true;
            }
            Blocking::Chunked { lead, tail } => {
                let lead = match lead.filter(|_| self.delays.recorded) {
                    Some(lead) => (lead - self.delays.lead_excess).max(lead / 5),
                    None => self.delays.copy_lead,
                };
                let first = row.first_activity;
                for activity in row.activities() {
                    self.launch(activity, time + lead, durations);
                }
                self.settle(|engine| engine.ends[first] != UNKNOWN);
                // The call returns the tail before the copy ends on the device.
                let done = self.ends[first] - tail;
                (done, MarkCause::Device(first))
            }
            Blocking::Streams(set) => {
                self.settle(|engine| match set {
                    StreamSet::All => engine.streams.keys().all(|stream| engine.is_idle(stream)),
                    StreamSet::One(stream) => engine.is_idle(stream),
                });
                let idle = match set {
                    StreamSet::All => self.streams.keys().max_by_key(|&s| self.streams[s].free),
                    StreamSet::One(stream) => Some(stream),
                };
                let own = time + self.delays.sync_own;
                match idle.map(|s| (self.streams[s].free + self.delays.sync_return, s)) {
                    Some((done, stream)) if done > own => (done, self.streams[stream].last_cause()),
                    _ => (own, MarkCause::Host),
                }
            }
            Blocking::Activity(activity) => {
                self.settle(|engine| engine.ends[activity] != UNKNOWN);
                let own = time + self.delays.sync_own;
                let done = self.ends[activity] + self.delays.sync_return;
                if done > own { (done, MarkCause::Device(activity)) } else { (own, MarkCause::Host) }
            }
        };
        self.returns[call] = back;
        true
    }

    /// When a stream has room for one more launch.
    fn queue_full_until(&self, activity: ActivityId) -> Nanos {
        self.streams[self.graph.activities[activity].stream].full_until()
    }

    /// How long after its stream is free a queued activity begins.
    fn queue_delay(&self, activity: ActivityId) -> Nanos {
        if let Some(delay) = self.between[activity] {
            return delay;
        }
        match self.graph.queue_delays[activity] {
            Some(delay) if self.delays.recorded || delay > LONGEST_OVERHEAD => delay,
            _ => self.delays.queue,
        }
    }

    /// Puts an activity into its stream; it may begin at `ready` at the earliest.
    fn launch(&mut self, activity: ActivityId, ready: Nanos, durations: &TiSlice<ActivityId, Nanos>) {
        let row = &self.graph.activities[activity];
        let delay = self.queue_delay(activity);
        if self.device.is_some() {
            return self.queue(activity, [ready, delay, durations[activity]]);
        }
        let stream = &mut self.streams[row.stream];
        let (mut start, mut cause) = (ready, ActivityCause::Launch);
        if let Some((last, this_step)) = stream.last {
            let free = stream.free + delay;
            if free > start {
                let why =
                    if this_step { ActivityCause::Stream(last) } else { ActivityCause::StreamBefore(last) };
                (start, cause) = (free, why);
            }
        }
        for wait in self.graph.waits_of(activity) {
            let ends = if wait.wraps { &self.ends_before } else { &self.ends };
            let after = ends[wait.from] + delay;
            if after > start {
                let why = if wait.wraps { ActivityCause::EventBefore } else { ActivityCause::Event };
                (start, cause) = (after, why(wait.from));
            }
        }
        let end = start + durations[activity];
        stream.push(activity, end);
        self.starts[activity] = start;
        self.ends[activity] = end;
        self.activity_causes[activity] = cause;
    }

    /// How far every thread and stream has got. What one step adds to each shows which is the slowest.
    pub(crate) fn progress(&self) -> Vec<Nanos> {
        let threads = self.graph.threads.iter().filter(|t| t.first_mark < t.end_mark);
        let hosts = threads.map(|t| self.marks[t.end_mark.previous()]);
        hosts.chain(self.streams.iter().map(|stream| stream.free)).collect()
    }

    /// When everything of the last step was done: the last mark passed, the last activity ended.
    pub fn completion(&self) -> Nanos {
        let host = self.marks.iter().copied().max().unwrap_or(Nanos::ZERO);
        self.ends.iter().copied().max().map_or(host, |device| host.max(device))
    }
}
