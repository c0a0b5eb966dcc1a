//! Calls that wait for the device, and the work that each waits for, both decided from the measured times.

use rustc_hash::FxHashMap;
use steptime_trace::{ActivityKind, Nanos, StreamId, SyncKind, Trace};
use typed_index_collections::{TiSlice, TiVec};

use crate::ids::{ActivityId, CallId, HostThreadId, StepId};
use crate::names::ApiKind;
use crate::samples::{Samples, median};
use crate::tables::{Activity, Blocking, Call, StreamSet};

/// Sets [`Call::blocking`] of every call.
pub(crate) fn classify(
    trace: &Trace,
    calls: &mut TiSlice<CallId, Call>,
    activities: &TiSlice<ActivityId, Activity>,
    samples: &Samples,
    correlation: &TiSlice<CallId, u64>,
) {
    let recorded = synchronised_streams(trace);
    // Per thread: the stream of the last launch, and the last activity before the last event record.
    let mut last_stream: FxHashMap<HostThreadId, StreamId> = FxHashMap::default();
    let mut last_activity: FxHashMap<HostThreadId, ActivityId> = FxHashMap::default();
    let mut recorded_activity: FxHashMap<HostThreadId, ActivityId> = FxHashMap::default();
    let busy = Busy::measure(activities, samples);
    for (index, row) in calls.iter_mut_enumerated() {
        let call = *row;
        // Inconsistent ids in a trace can link an activity to a call that only waits: it is a launch then.
        let launches = call.has_activities();
        row.blocking = match call.kind {
            ApiKind::DeviceSync | ApiKind::Free | ApiKind::StreamSync | ApiKind::EventSync if launches => {
                Blocking::Never
            }
            ApiKind::Copy | ApiKind::BlockingCopy => copy(&call, activities, samples, &busy),
            ApiKind::DeviceSync | ApiKind::Free => Blocking::Streams(StreamSet::All),
            ApiKind::StreamSync => {
                let explicit = recorded
                    .get(&correlation[index])
                    .and_then(|&id| trace.streams.iter().position(|s| s.stream == id))
                    .map(StreamId::from);
                let stream = explicit.or_else(|| last_stream.get(&call.thread).copied());
                Blocking::Streams(stream.map_or(StreamSet::All, StreamSet::One))
            }
            ApiKind::EventSync => {
                recorded_activity.get(&call.thread).map_or(Blocking::Never, |&a| Blocking::Activity(a))
            }
            _ => Blocking::Never,
        };
        if let Some(last) = call.activities().last() {
            last_stream.insert(call.thread, activities[last].stream);
            last_activity.insert(call.thread, last);
        }
        if call.kind == ApiKind::EventRecord
            && let Some(&activity) = last_activity.get(&call.thread)
        {
            recorded_activity.insert(call.thread, activity);
        }
    }
}

/// Returns, by the correlation id of the call, the id of the stream that it synchronised, from the `cuda_sync` records
/// of the trace.
fn synchronised_streams(trace: &Trace) -> FxHashMap<u64, i64> {
    let syncs = &trace.syncs;
    (0..syncs.len())
        .filter(|&i| syncs.kind[i] == SyncKind::Stream)
        .filter_map(|i| Some((syncs.correlation[i], syncs.stream[i]?)))
        .collect()
}

/// A pageable copy is blocking if the measured times show that the device began before the call returned.
fn copy(call: &Call, activities: &TiSlice<ActivityId, Activity>, samples: &Samples, busy: &Busy) -> Blocking {
    let Some(activity) = call.activities().next() else { return Blocking::Never };
    if activities[activity].kind != ActivityKind::Memcpy {
        return Blocking::Never;
    }
    let (mut early, mut leads, mut tails) = (Vec::new(), Vec::new(), Vec::new());
    for step in samples.steps() {
        let (Some(begin), Some(end), Some(start), Some(done)) = (
            samples.mark(step, call.begin),
            samples.mark(step, call.end),
            samples.activity_start(step, activity),
            samples.activity_end(step, activity),
        ) else {
            continue;
        };
        early.push(start - end);
        tails.push(done - end);
        // The launches before the first step are not known.
        let stream = activities[activity].stream;
        if step.0 > 0
            && !busy.at(step, stream, start, begin)
            && !busy.at(step.previous(), stream, start, begin)
        {
            leads.push(start - begin);
        }
    }
    match median(&mut early) {
        Some(early) if early < Nanos::ZERO => {
            Blocking::Chunked { lead: median(&mut leads), tail: median(&mut tails).unwrap_or(Nanos::ZERO) }
        }
        _ => Blocking::Never,
    }
}

/// Busy times of each stream, per step.
struct Busy {
    /// For each step and stream: the starts of its activities in order, each with the latest end so far.
    streams: TiVec<StepId, FxHashMap<StreamId, Vec<(Nanos, Nanos)>>>,
}

impl Busy {
    fn measure(activities: &TiSlice<ActivityId, Activity>, samples: &Samples) -> Busy {
        let of_step = |step: StepId| {
            let mut streams: FxHashMap<StreamId, Vec<(Nanos, Nanos)>> = FxHashMap::default();
            for (at, activity) in activities.iter_enumerated() {
                let span = (samples.activity_start(step, at), samples.activity_end(step, at));
                if let (Some(start), Some(end)) = span {
                    streams.entry(activity.stream).or_default().push((start, end));
                }
            }
            for spans in streams.values_mut() {
                spans.sort_unstable();
                let mut latest = Nanos(i64::MIN);
                for (_, end) in spans {
                    latest = latest.max(*end);
                    *end = latest;
                }
            }
            streams
        };
        Busy { streams: samples.steps().map(of_step).collect() }
    }

    /// Whether a stream was still busy at `time` with work that began before `start`.
    fn at(&self, step: StepId, stream: StreamId, start: Nanos, time: Nanos) -> bool {
        let Some(spans) = self.streams[step].get(&stream) else { return false };
        let before = spans.partition_point(|span| span.0 < start);
        before.checked_sub(1).is_some_and(|last| spans[last].1 > time)
    }
}
