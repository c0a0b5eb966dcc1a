//! Host threads as sequences of marks: an op or a call begins, an op or a call ends.

use std::cmp::Reverse;

use steptime_trace::{NameId, Nanos, ThreadId, Trace};

use crate::ids::{TraceCall, TraceOp};
use crate::names::EventName;

/// What a [`RawMark`] belongs to: a row of `Trace::ops` or of `Trace::calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Source {
    Op(TraceOp),
    Call(TraceCall),
}

/// The beginning or the end of one host event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawMark {
    pub time: Nanos,
    pub source: Source,
    pub begins: bool,
    pub name: NameId,
}

impl RawMark {
    /// What must agree for two marks of different steps to be the same mark.
    pub(crate) fn label(&self) -> u64 {
        label(self.name, matches!(self.source, Source::Call(_)), self.begins)
    }
}

pub(crate) fn label(name: NameId, call: bool, begins: bool) -> u64 {
    (u64::from(name.0) << 2) | (u64::from(call) << 1) | u64::from(begins)
}

/// One host thread's properly nested marks over the whole trace.
#[derive(Debug, Clone)]
pub(crate) struct ThreadMarks {
    pub thread: ThreadId,
    pub marks: Vec<RawMark>,
    /// Events that ended after the one they began in: cut to fit.
    pub clamped: usize,
    /// The most events around an event, itself included.
    pub depth: usize,
}

/// Nests the ops and calls of every thread. Step marks are left out: they are windows, not work.
pub(crate) fn of_trace(trace: &Trace) -> Vec<ThreadMarks> {
    let mut events: Vec<Vec<(Nanos, Nanos, Source, NameId)>> = vec![Vec::new(); trace.threads.len()];
    let step_names: Vec<bool> = trace.names.iter().map(|(_, name)| EventName::of(name).is_step()).collect();
    for op in 0..trace.ops.len() {
        let name = trace.ops.name[op];
        if !step_names[name.0 as usize] {
            let start = trace.ops.start[op];
            events[trace.ops.thread[op].0 as usize].push((
                start,
                start + trace.ops.dur[op],
                Source::Op(TraceOp::from(op)),
                name,
            ));
        }
    }
    for call in 0..trace.calls.len() {
        let start = trace.calls.start[call];
        events[trace.calls.thread[call].0 as usize].push((
            start,
            start + trace.calls.dur[call],
            Source::Call(TraceCall::from(call)),
            trace.calls.name[call],
        ));
    }
    events
        .into_iter()
        .enumerate()
        .filter(|(_, events)| !events.is_empty())
        .map(|(thread, events)| nest(ThreadId(thread as u32), events))
        .collect()
}

fn nest(thread: ThreadId, mut events: Vec<(Nanos, Nanos, Source, NameId)>) -> ThreadMarks {
    // At one instant the longer event is the outer one, and an op is outside a call.
    events.sort_by_key(|&(start, end, source, _)| (start, Reverse(end), source));
    let mut marks = Vec::with_capacity(2 * events.len());
    let mut open: Vec<(Nanos, Source, NameId)> = Vec::new();
    let (mut clamped, mut depth) = (0, 0);
    for (start, end, source, name) in events {
        close_until(&mut open, &mut marks, start);
        let mut end = end;
        if let Some(&(outer, ..)) = open.last()
            && end > outer
        {
            end = outer;
            clamped += 1;
        }
        marks.push(RawMark { time: start, source, begins: true, name });
        open.push((end, source, name));
        depth = depth.max(open.len());
    }
    close_until(&mut open, &mut marks, Nanos::MAX);
    ThreadMarks { thread, marks, clamped, depth }
}

fn close_until(open: &mut Vec<(Nanos, Source, NameId)>, marks: &mut Vec<RawMark>, now: Nanos) {
    while let Some(&(end, source, name)) = open.last() {
        if end > now {
            break;
        }
        marks.push(RawMark { time: end, source, begins: false, name });
        open.pop();
    }
}
