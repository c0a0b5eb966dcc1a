//! Dependencies between streams through events.
//!
//! Kineto records neither the stream nor the event of `cudaEventRecord` and `cudaStreamWaitEvent`. If the
//! trace has `cuda_sync` records, they name the waiting stream and often the event; the rest follows from the order
//! of calls on a thread, checked against the device's times: a wait refers to an event recorded shortly before it,
//! and of the events that were done when the waiting activity began it is the one done last. A wait that matches no event
//! is dropped and counted.

use rustc_hash::FxHashMap;
use steptime_trace::{StreamId, SyncKind, Trace};
use typed_index_collections::TiSlice;

use crate::ids::{ActivityId, CallId};
use crate::inferred_waits;
use crate::names::ApiKind;
use crate::samples::{Samples, median};
use crate::tables::{Activity, Call, StreamDependency};

/// Number of events recorded before a wait among which its event is searched.
const RECENT: usize = 64;
/// Number of calls ahead in which the next activity of a stream is searched.
const AHEAD: usize = 4096;

/// Dependencies between streams, and the numbers of inferred and refuted waits.
#[derive(Debug, Default)]
pub(crate) struct StreamWaits {
    pub dependencies: Vec<StreamDependency>,
    pub waits: usize,
    pub inferred: usize,
    pub refuted: usize,
}

/// Stream wait that the trace itself describes.
#[derive(Debug, Clone, Copy)]
struct RecordedWait {
    waiting: StreamId,
    /// Stream of the awaited event, and the correlation of the call that recorded it.
    event: Option<(StreamId, u64)>,
}

/// Parts of the graph that are already built.
#[derive(Clone, Copy)]
struct Context<'c> {
    calls: &'c TiSlice<CallId, Call>,
    correlation: &'c TiSlice<CallId, u64>,
    activities: &'c TiSlice<ActivityId, Activity>,
    samples: &'c Samples,
    explicit: &'c FxHashMap<u64, RecordedWait>,
    /// Whether the step waits for events that are not recorded in it: the trace leaves the records out.
    unrecorded: bool,
}

/// Consecutive event calls of one thread with no launch between, and the streams launched into before and after.
struct Run {
    records: Vec<CallId>,
    waits: Vec<CallId>,
    before: Option<StreamId>,
    after: Option<StreamId>,
    /// First activity of each stream after the run.
    next: Vec<(StreamId, ActivityId)>,
}

/// Activities and events of one thread so far.
#[derive(Default)]
struct Progress {
    last_stream: Option<StreamId>,
    /// Last activity of each stream.
    tail: FxHashMap<StreamId, ActivityId>,
    /// Activities marked by the events recorded so far.
    recent: Vec<ActivityId>,
    /// For explicit waits: the last activity of each stream when an event was recorded.
    recorded: FxHashMap<u64, FxHashMap<StreamId, ActivityId>>,
}

pub(crate) fn find(
    trace: &Trace,
    calls: &TiSlice<CallId, Call>,
    correlation: &TiSlice<CallId, u64>,
    activities: &TiSlice<ActivityId, Activity>,
    samples: &Samples,
) -> StreamWaits {
    let mut found = StreamWaits::default();
    let explicit = explicit_waits(trace);
    let any = |kind| calls.iter().any(|call| call.kind == kind);
    let unrecorded = any(ApiKind::StreamWait) && !any(ApiKind::EventRecord);
    let context = Context { calls, correlation, activities, samples, explicit: &explicit, unrecorded };
    let all: Vec<CallId> = calls.keys().collect();
    for own in all.chunk_by(|&a, &b| calls[a].thread == calls[b].thread) {
        context.thread(own, &mut found);
    }
    inferred_waits::infer(calls, activities, samples, &mut found.dependencies);
    found.dependencies.sort_by_key(|d| (d.to, d.from, d.wraps));
    found.dependencies.dedup_by_key(|d| (d.to, d.from, d.wraps));
    found
}

/// Returns the recorded waits by the correlation of their call.
fn explicit_waits(trace: &Trace) -> FxHashMap<u64, RecordedWait> {
    let syncs = &trace.syncs;
    let index = |number: Option<i64>| {
        let number = number?;
        trace.streams.iter().position(|s| s.stream == number).map(StreamId::from)
    };
    (0..syncs.len())
        .filter(|&i| syncs.kind[i] == SyncKind::StreamWaitEvent)
        .filter_map(|i| {
            let event = index(syncs.wait_on_stream[i]).zip(syncs.wait_on_event_record_correlation[i]);
            Some((syncs.correlation[i], RecordedWait { waiting: index(syncs.stream[i])?, event }))
        })
        .collect()
}

impl Context<'_> {
    fn thread(&self, own: &[CallId], found: &mut StreamWaits) {
        let mut progress = Progress::default();
        let mut at = 0;
        while at < own.len() {
            let call = &self.calls[own[at]];
            let of_events = matches!(call.kind, ApiKind::EventRecord | ApiKind::StreamWait);
            // Inconsistent ids in a trace can link an activity to such a call: it is a launch then.
            if of_events && !call.has_activities() {
                let end = (at..own.len()).find(|&i| self.calls[own[i]].has_activities()).unwrap_or(own.len());
                let run = self.run(&own[at..end], &own[end..], &progress);
                found.waits += run.waits.len();
                progress.record(&run, self);
                self.connect(&run, &progress, found);
                at = end;
            } else {
                for activity in call.activities() {
                    let stream = self.activities[activity].stream;
                    progress.tail.insert(stream, activity);
                    progress.last_stream = Some(stream);
                }
                at += 1;
            }
        }
    }

    fn run(&self, run: &[CallId], ahead: &[CallId], progress: &Progress) -> Run {
        let of = |kind| run.iter().copied().filter(|&c| self.calls[c].kind == kind).collect();
        let mut next: Vec<(StreamId, ActivityId)> = Vec::new();
        let waits: Vec<CallId> = of(ApiKind::StreamWait);
        let ahead = if waits.is_empty() { &[] } else { &ahead[..ahead.len().min(AHEAD)] };
        for activity in ahead.iter().flat_map(|&c| self.calls[c].activities()) {
            let stream = self.activities[activity].stream;
            if !next.iter().any(|&(s, _)| s == stream) {
                next.push((stream, activity));
            }
        }
        let after = next.first().map(|&(stream, _)| stream);
        Run { records: of(ApiKind::EventRecord), waits, before: progress.last_stream, after, next }
    }

    fn connect(&self, run: &Run, progress: &Progress, found: &mut StreamWaits) {
        let next_of = |stream: StreamId| run.next.iter().find(|&&(s, _)| s == stream).map(|&(_, a)| a);
        let mut targets: Vec<ActivityId> = Vec::new();
        for &wait in &run.waits {
            let Some(explicit) = self.explicit.get(&self.correlation[wait]) else { continue };
            let Some(to) = next_of(explicit.waiting) else { continue };
            let from =
                explicit.event.and_then(|(on, record)| progress.recorded.get(&record)?.get(&on).copied());
            match from {
                Some(from) => {
                    found.dependencies.push(StreamDependency { from, to, inferred: false, wraps: false })
                }
                None => targets.push(to),
            }
        }
        // A trace with synchronisation records leaves out only waits for work that was already done.
        if self.explicit.is_empty() && !run.waits.is_empty() {
            let fans_out = run.records.len() == 1 && (run.waits.len() > 1 || run.before == run.after);
            if fans_out {
                targets.extend(run.next.iter().filter(|&&(s, _)| Some(s) != run.before).map(|&(_, a)| a));
            } else {
                targets.extend(run.after.and_then(next_of));
            }
            found.inferred += run.waits.len();
        } else {
            found.inferred += targets.len();
        }
        targets.sort_unstable();
        targets.dedup();
        for to in targets {
            let sources = self.sources(run, progress, to);
            found.refuted += usize::from(sources.is_empty());
            found.dependencies.extend(sources.into_iter().map(|from| StreamDependency {
                from,
                to,
                inferred: true,
                wraps: false,
            }));
        }
    }

    /// Returns the activities that `to` waits for. Several records in a row collect all other streams; otherwise it is the
    /// recent event that was done last.
    fn sources(&self, run: &Run, progress: &Progress, to: ActivityId) -> Vec<ActivityId> {
        let fans_in = run.records.len() > 1;
        let reach = if fans_in { run.records.len() } else { RECENT };
        let from = progress.recent.len().saturating_sub(reach);
        let stream = self.activities[to].stream;
        let mut sources: Vec<ActivityId> = progress.recent[from..]
            .iter()
            .copied()
            .filter(|&a| a < to && self.activities[a].stream != stream && self.holds(a, to))
            .collect();
        sources.sort_unstable();
        sources.dedup();
        if !fans_in {
            let last = sources.iter().copied().max_by_key(|&a| (self.typical_end(a), a));
            sources = last.into_iter().collect();
        }
        sources
    }

    /// Whether `to` began after `from` had ended in at least nine of ten steps.
    fn holds(&self, from: ActivityId, to: ActivityId) -> bool {
        let (mut yes, mut all) = (0, 0);
        for step in self.samples.steps() {
            let times = self.samples.activity_end(step, from).zip(self.samples.activity_start(step, to));
            if let Some((end, start)) = times {
                all += 1;
                yes += usize::from(start >= end);
            }
        }
        all > 0 && yes * 10 >= all * 9
    }

    fn typical_end(&self, activity: ActivityId) -> Option<steptime_trace::Nanos> {
        let mut ends: Vec<_> = self
            .samples
            .steps()
            .filter_map(|s| Some(self.samples.activity_end(s, activity)? - self.samples.start(s)))
            .collect();
        median(&mut ends)
    }
}

impl Progress {
    /// Adds the activities marked by the events of a run: one event marks the stream of the last launch; several in a row
    /// collect the other streams for the one that goes on.
    fn record(&mut self, run: &Run, context: &Context<'_>) {
        match run.records.len() {
            // Without records, each wait is for an event after the last activity of each stream.
            0 if context.unrecorded && !run.waits.is_empty() => {
                let mut tails: Vec<ActivityId> = self.tail.values().copied().collect();
                tails.sort_unstable();
                self.recent.extend(tails);
            }
            0 => {}
            1 => self.recent.extend(run.before.and_then(|s| self.tail.get(&s).copied())),
            _ => {
                let mut others: Vec<ActivityId> =
                    self.tail.iter().filter(|&(&s, _)| Some(s) != run.after).map(|(_, &a)| a).collect();
                others.sort_unstable();
                self.recent.extend(others);
            }
        }
        if !context.explicit.is_empty() {
            let tails = run.records.iter().map(|&r| (context.correlation[r], self.tail.clone()));
            self.recorded.extend(tails);
        }
    }
}
