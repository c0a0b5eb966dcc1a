//! The discrete-event engine: host threads and device streams, one step after the other.
//!
//! Each mark (the beginning or end of an op or call on a host thread) waits for one earlier mark: its time is that
//! mark's time plus a gap, the host's own time between the two. Launches and waits happen at marks and couple threads to streams. Each
//! computed time keeps its
//! *cause*, the last thing it waited for. The causes form the critical path.

mod calls;
mod lazy_device;
mod ready;

use steptime_cost::{HostCosts, PricedGraph};
use steptime_graph::{
    ActivityId, Blocking, CallId, HostThreadId, MarkId, MarkKind, RendezvousId, StepGraph, StreamId, TiSlice,
    TiVec,
};
use steptime_trace::Nanos;

use self::ready::Ready;
use crate::cause::{ActivityCause, MarkCause};
use crate::delays::{Delays, dense};
use crate::device::Device;
use crate::stream::{NEVER, Stream, UNKNOWN};

/// Longest delay between queued activities that counts as overhead; a longer one is a wait for an unrecorded event.
const LONGEST_OVERHEAD: Nanos = Nanos(5_000);

/// State of the engine between two steps.
#[derive(Debug, Clone)]
pub struct Engine<'g> {
    graph: &'g StepGraph,
    delays: Delays,
    streams: TiVec<StreamId, Stream>,
    /// Time of each mark in this step, [`NEVER`] until it is passed; `before` has those of the previous step.
    pub(crate) marks: TiVec<MarkId, Nanos>,
    before: TiVec<MarkId, Nanos>,
    pub(crate) starts: TiVec<ActivityId, Nanos>,
    pub(crate) ends: TiVec<ActivityId, Nanos>,
    ends_before: TiVec<ActivityId, Nanos>,
    pub(crate) mark_causes: TiVec<MarkId, MarkCause>,
    pub(crate) activity_causes: TiVec<ActivityId, ActivityCause>,
    /// For each call that waits for the device: the earliest time at which it can return, and the cause of that time.
    returns: TiVec<CallId, (Nanos, MarkCause)>,
    /// For calls whose activities start before the call ends: the earliest start, relative to the beginning of the call.
    leads: TiVec<CallId, Option<Nanos>>,
    /// Delay of an activity of a captured CUDA graph, counted from the time when its stream is free.
    between: TiVec<ActivityId, Option<Nanos>>,
    /// The shared device with its launched activities; `None` if kernels neither share it nor wait for other ranks.
    device: Option<Device<'g>>,
    next: TiVec<HostThreadId, MarkId>,
    /// For each thread that waits for other ranks inside a call: the time at which the wait began, and the cause of
    /// that time.
    held: TiVec<HostThreadId, Option<(Nanos, MarkCause)>>,
}

/// Progress of a rank until it needs other ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RankProgress {
    /// All threads have finished the step.
    End,
    /// A thread waits for other ranks.
    Others,
}

/// Effect of passing a mark.
enum PassEffect {
    /// No effect on other threads.
    Alone,
    /// Something was launched, or the thread waited.
    Seen,
    /// Not passed yet: the thread waits for other ranks.
    Held,
}

impl<'g> Engine<'g> {
    /// Creates an engine before the first step: all streams idle, all threads at time zero.
    pub fn new(graph: &'g StepGraph, host: &HostCosts) -> Engine<'g> {
        let delays = Delays::from_host(host);
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
            next: vec![MarkId(0); graph.threads.len()].into(),
            held: vec![None; graph.threads.len()].into(),
        }
    }

    /// Creates an engine before the first step of a priced graph. Kernels share the device if their demands are known.
    pub(crate) fn from_priced(priced: &'g PricedGraph<'_>) -> Engine<'g> {
        let device = priced.demands.as_ref().map(|demands| Device::new(priced.graph, Some(demands)));
        Engine { device, ..Engine::new(priced.graph, &priced.host) }
    }

    /// Creates the engine of one rank of a job; `meets` has the rendezvous of each collective activity. The engine does
    /// not model the multiprocessors that collectives take from kernels.
    pub(crate) fn among(
        priced: &'g PricedGraph<'_>,
        meets: &'g TiSlice<ActivityId, Option<RendezvousId>>,
    ) -> Engine<'g> {
        let demands = priced.demands.as_ref().filter(|demands| {
            let rows = priced.graph.activities.iter_enumerated();
            let mut own = rows.filter(|(at, _)| meets[*at].is_none() && demands.of[*at].is_some());
            let first = own.next().map(|(_, row)| row.stream);
            own.any(|(_, row)| Some(row.stream) != first)
        });
        let device = Some(Device::among(priced.graph, demands, meets));
        Engine { device, ..Engine::new(priced.graph, &priced.host) }
    }

    /// Runs one step. `gaps` has the host time before each mark, `durations` each activity's time.
    pub fn step(&mut self, gaps: &TiSlice<MarkId, Nanos>, durations: &TiSlice<ActivityId, Nanos>) {
        self.begin_step();
        self.go_on(gaps, durations, false);
    }

    /// Begins the next step.
    pub(crate) fn begin_step(&mut self) {
        std::mem::swap(&mut self.marks, &mut self.before);
        self.marks.raw.fill(NEVER);
        self.ends_before.raw.copy_from_slice(&self.ends.raw);
        self.streams.iter_mut().for_each(Stream::begin_step);
        self.device.iter_mut().for_each(Device::begin_step);
        self.next = self.graph.threads.iter().map(|thread| thread.first_mark).collect();
    }

    /// Continues the step until its end, or until other ranks are needed. If `all` is set, a thread that waits for
    /// other ranks does not stop the remaining threads.
    pub(crate) fn go_on(
        &mut self,
        gaps: &TiSlice<MarkId, Nanos>,
        durations: &TiSlice<ActivityId, Nanos>,
        all: bool,
    ) -> RankProgress {
        for thread in self.graph.threads.keys() {
            if let Some(when) = self.held[thread].take() {
                self.run(thread, when, true, gaps, durations);
            }
        }
        let mut ready = Ready::default();
        for thread in self.graph.threads.keys() {
            self.look_at(thread, gaps, &mut ready);
        }
        let mut is_held = !all && self.held.iter().any(Option::is_some);
        while !is_held {
            let Some((thread, when)) = ready.take_first() else { break };
            let first = self.next[thread];
            self.run(thread, when, false, gaps, durations);
            is_held = !all && self.held[thread].is_some();
            self.look_at(thread, gaps, &mut ready);
            for waiting in ready.take_waiting(first.until(self.next[thread])) {
                self.look_at(waiting, gaps, &mut ready);
            }
        }
        self.settle(|_| false);
        let through = |thread: HostThreadId| self.next[thread] == self.graph.threads[thread].end_mark;
        if self.graph.threads.keys().all(through) { RankProgress::End } else { RankProgress::Others }
    }

    /// Runs a thread until it launches or waits, or until its next mark waits for another thread. `again` is set if the
    /// thread stopped at this mark before, to wait for other ranks.
    fn run(
        &mut self,
        thread: HostThreadId,
        mut when: (Nanos, MarkCause),
        mut again: bool,
        gaps: &TiSlice<MarkId, Nanos>,
        durations: &TiSlice<ActivityId, Nanos>,
    ) {
        let graph = self.graph;
        let end = graph.threads[thread].end_mark;
        let mut mark = self.next[thread];
        loop {
            let passed = self.pass(mark, when, again, gaps, durations);
            if let PassEffect::Held = passed {
                self.next[thread] = mark;
                self.held[thread] = Some(when);
                return;
            }
            let ahead = mark.next();
            let visible = matches!(passed, PassEffect::Seen);
            if visible || ahead == end || graph.marks[ahead].after != mark || graph.marks[ahead].wraps {
                self.next[thread] = ahead;
                return;
            }
            let (own, let_go) = (self.marks[mark], self.marks[mark] + gaps[ahead]);
            when = if own > let_go { (own, MarkCause::Busy) } else { (let_go, MarkCause::Host) };
            (mark, again) = (ahead, false);
        }
    }

    /// Registers the time at which the next mark of a thread can be passed, or the mark it waits for.
    fn look_at(&self, thread: HostThreadId, gaps: &TiSlice<MarkId, Nanos>, ready: &mut Ready) {
        let next = self.next[thread];
        if next == self.graph.threads[thread].end_mark || self.held[thread].is_some() {
            return;
        }
        match self.candidate(next, gaps) {
            Some(when) => ready.add(thread, when),
            None => ready.wait(thread, self.graph.marks[next].after),
        }
    }

    /// Returns the earliest time of a mark without regard to the device, and the cause of that time; `None` until the
    /// mark that it waits for was passed.
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

    /// Passes a mark at the time of [`Engine::candidate`], or later if the device delays it. `again` is set if it was held before.
    fn pass(
        &mut self,
        mark: MarkId,
        (mut time, mut cause): (Nanos, MarkCause),
        again: bool,
        gaps: &TiSlice<MarkId, Nanos>,
        durations: &TiSlice<ActivityId, Nanos>,
    ) -> PassEffect {
        let mut passed = PassEffect::Alone;
        match self.graph.marks[mark].kind {
            MarkKind::CallBegin(call) => {
                let launched = if again { true } else { self.launch_early(call, time, durations) };
                if self.graph.calls[call].blocking != Blocking::Never {
                    let Some(back) = self.return_of(call, time) else { return PassEffect::Held };
                    self.returns[call] = back;
                    passed = PassEffect::Seen;
                } else if launched {
                    passed = PassEffect::Seen;
                }
            }
            MarkKind::CallEnd(call) => {
                let row = &self.graph.calls[call];
                let launches =
                    row.blocking == Blocking::Never && self.leads[call].is_none() && row.has_activities();
                if launches && !self.settle(|engine| engine.queue_full_until(row.first_activity) != UNKNOWN) {
                    return PassEffect::Held;
                }
                let (back, why) = self.returns[call];
                // In a call that waits, the host's own work begins after the wait.
                let back = if back == NEVER { back } else { back + gaps[mark] };
                if back > time {
                    (time, cause) = (back, why);
                }
                self.returns[call] = (NEVER, MarkCause::Host);
                if launches {
                    let full = self.queue_full_until(row.first_activity);
                    if full > time {
                        let stream = self.graph.activities[row.first_activity].stream;
                        (time, cause) = (full, self.streams[stream].last_cause());
                    }
                    for activity in row.activities() {
                        self.launch(activity, time + self.delays.launch, durations);
                    }
                    passed = PassEffect::Seen;
                }
            }
            MarkKind::OpBegin(_) | MarkKind::OpEnd(_) => {}
        }
        self.marks[mark] = time;
        self.mark_causes[mark] = cause;
        passed
    }

    /// Returns the time from which a stream has room for one more launch.
    fn queue_full_until(&self, activity: ActivityId) -> Nanos {
        self.streams[self.graph.activities[activity].stream].full_until()
    }

    /// Returns the delay of a queued activity after its stream is free.
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
        let ready = if self.delays.recorded { ready + self.graph.held_back[activity] } else { ready };
        if let Some(device) = &mut self.device {
            if !device.is_at_once(activity, &self.ends) {
                return self.queue(activity, [ready, delay, durations[activity]]);
            }
            device.ran(activity);
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

    /// Returns the time of the first mark of the last step.
    pub(crate) fn begin(&self) -> Nanos {
        self.marks.first().copied().unwrap_or(Nanos::ZERO)
    }

    /// Returns the time that each thread and each stream has reached. The one that advances the most in a step determines the step time.
    pub(crate) fn progress(&self) -> Vec<Nanos> {
        let threads = self.graph.threads.iter().filter(|t| t.first_mark < t.end_mark);
        let hosts = threads.map(|t| self.marks[t.end_mark.previous()]);
        hosts.chain(self.streams.iter().map(|stream| stream.free)).collect()
    }

    /// Returns the end of the last step: the time of its last mark or the end of its last activity, whichever is later.
    pub fn completion(&self) -> Nanos {
        let host = self.marks.iter().copied().max().unwrap_or(Nanos::ZERO);
        self.ends.iter().copied().max().map_or(host, |device| host.max(device))
    }
}
