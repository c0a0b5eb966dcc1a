//! Which calls wait for the device, and for what: decided from the measured times.

use rustc_hash::FxHashMap;
use steptime_trace::{ActivityKind, Nanos, SyncKind, Trace};

use crate::api::ApiKind;
use crate::graph::{Activity, Blocking, Call, StreamSet};
use crate::samples::{Samples, median};

/// Sets [`Call::blocking`] of every call.
pub(crate) fn classify(
    trace: &Trace,
    calls: &mut [Call],
    activities: &[Activity],
    samples: &Samples,
    correlation: &[u64],
) {
    let recorded = synchronised_streams(trace);
    // Per thread: the stream launched into last, and the last activity before the last event record.
    let mut last_stream: FxHashMap<u32, u32> = FxHashMap::default();
    let mut last_activity: FxHashMap<u32, u32> = FxHashMap::default();
    let mut recorded_activity: FxHashMap<u32, u32> = FxHashMap::default();
    for (index, row) in calls.iter_mut().enumerate() {
        let call = *row;
        row.blocking = match call.kind {
            ApiKind::Copy | ApiKind::BlockingCopy => copy(&call, activities, samples),
            ApiKind::DeviceSync => Blocking::Streams(StreamSet::All),
            ApiKind::StreamSync => {
                let explicit = recorded
                    .get(&correlation[index])
                    .and_then(|&id| trace.streams.iter().position(|s| s.stream == id))
                    .map(|at| at as u32);
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
            last_activity.insert(call.thread, last as u32);
        }
        if call.kind == ApiKind::EventRecord
            && let Some(&activity) = last_activity.get(&call.thread)
        {
            recorded_activity.insert(call.thread, activity);
        }
    }
}

/// Correlation of a stream synchronisation -> the stream's id, where the trace has `cuda_sync` records.
fn synchronised_streams(trace: &Trace) -> FxHashMap<u64, i64> {
    let syncs = &trace.syncs;
    (0..syncs.len())
        .filter(|&i| syncs.kind[i] == SyncKind::Stream)
        .filter_map(|i| Some((syncs.correlation[i], syncs.stream[i]?)))
        .collect()
}

/// A copy of pageable memory blocks if, as measured, the device began before the call returned.
fn copy(call: &Call, activities: &[Activity], samples: &Samples) -> Blocking {
    let Some(index) = call.activities().next() else { return Blocking::Never };
    if activities[index].kind != ActivityKind::Memcpy {
        return Blocking::Never;
    }
    let activity = index as u32;
    let (mut early, mut leads, mut tails) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..samples.steps() {
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
        if idle_at(step, activity, activities, samples, begin) {
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

/// Whether the activity's stream had nothing left to do at `time`, when the activity itself is left out.
fn idle_at(step: usize, activity: u32, activities: &[Activity], samples: &Samples, time: Nanos) -> bool {
    let stream = activities[activity as usize].stream;
    let Some(start) = samples.activity_start(step, activity) else { return false };
    let busy = |step: usize| {
        (0..activities.len() as u32).filter(|&a| activities[a as usize].stream == stream).any(|a| {
            match (samples.activity_start(step, a), samples.activity_end(step, a)) {
                (Some(other), Some(end)) => other < start && end > time,
                _ => false,
            }
        })
    };
    // What was launched before the first step is not known.
    step > 0 && !busy(step) && !busy(step - 1)
}
