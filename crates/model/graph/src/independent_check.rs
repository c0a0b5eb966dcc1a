//! Period and device active time of a trace's steps, computed from marks and kernels only, independently of the graph, so
//! that they can be used to check the graph.

use rustc_hash::FxHashMap;
use steptime_trace::{Nanos, StreamId, Trace};
use typed_index_collections::TiSlice;

use crate::ids::StepId;
use crate::names::EventName;
use crate::samples::{median, union};
use crate::steps::StepWindow;

/// Period and device active time of a step, from marks and kernels only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndependentCheck {
    /// Median time from one step mark to the next, and for the last mark its duration; `None` if there are fewer than two marks.
    pub period: Option<Nanos>,
    /// Mean time per step in which any activity of the steps ran, on any stream of any device.
    pub active: Nanos,
}

impl IndependentCheck {
    /// Computes it from the trace, for the steps between the first and the last of `windows`.
    pub(crate) fn measure(trace: &Trace, windows: &TiSlice<StepId, StepWindow>) -> IndependentCheck {
        let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
            return IndependentCheck::default();
        };
        IndependentCheck {
            period: period(trace, first.start),
            active: active(trace, first.start, last.end) / windows.len() as i64,
        }
    }
}

/// Returns the median length of the step marks from a time on.
fn period(trace: &Trace, from: Nanos) -> Option<Nanos> {
    let is_step: Vec<bool> = trace.names.iter().map(|(_, name)| EventName::parse(name).is_step()).collect();
    let of_mark = |op: usize| (trace.ops.start[op], trace.ops.start[op] + trace.ops.dur[op]);
    let mut marks: Vec<(Nanos, Nanos)> =
        (0..trace.ops.len()).filter(|&op| is_step[trace.ops.name[op].index()]).map(of_mark).collect();
    marks.retain(|&(start, _)| start >= from);
    marks.sort_unstable();
    marks.dedup_by_key(|mark| mark.0);
    if marks.len() < 2 {
        return None;
    }
    let next = marks.iter().skip(1).map(|mark| Some(mark.0)).chain([None]);
    let mut lengths: Vec<Nanos> =
        marks.iter().zip(next).map(|(&(start, end), next)| next.unwrap_or(end) - start).collect();
    median(&mut lengths)
}

/// Returns the time in which any activity ran whose call began between two times. An activity without a call counts if it began between them, unless
/// all earlier activities on its stream have no call either: it was queued before the recording began.
fn active(trace: &Trace, from: Nanos, to: Nanos) -> Nanos {
    let mut called: FxHashMap<u64, Nanos> = FxHashMap::default();
    for (&id, &start) in trace.calls.correlation.iter().zip(&trace.calls.start) {
        if id != 0 {
            called.entry(id).and_modify(|first| *first = start.min(*first)).or_insert(start);
        }
    }
    let activities = &trace.activities;
    let call = |at: usize| called.get(&activities.correlation[at]).copied();
    let mut first_called: FxHashMap<StreamId, Nanos> = FxHashMap::default();
    for at in (0..activities.len()).filter(|&at| call(at).is_some()) {
        let first = first_called.entry(activities.stream[at]).or_insert(activities.start[at]);
        *first = activities.start[at].min(*first);
    }
    let was_queued = |at: usize| {
        let first = first_called.get(&activities.stream[at]);
        first.is_some_and(|&first| activities.start[at] < first)
    };
    let began = |at: usize| match call(at) {
        Some(began) => began,
        None if was_queued(at) => Nanos(i64::MIN),
        None => activities.start[at],
    };
    let mut spans: Vec<(Nanos, Nanos)> = (0..activities.len())
        .filter(|&at| (from..=to).contains(&began(at)))
        .map(|at| (activities.start[at], activities.end(at)))
        .collect();
    spans.sort_unstable();
    union(&spans)
}
