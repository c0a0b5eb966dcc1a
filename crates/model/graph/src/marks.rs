//! Host threads as sequences of marks: an op or a call begins, an op or a call ends.

use std::cmp::Reverse;

use steptime_trace::{NameId, Nanos, ThreadId, Trace};

use crate::ids::{TraceCall, TraceOp};
use crate::names::{ApiKind, EventName};

/// Source of a [`RawMark`]: a row of `Trace::ops` or of `Trace::calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Source {
    Op(TraceOp),
    Call(TraceCall),
}

/// Beginning or end of one host event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawMark {
    pub time: Nanos,
    pub source: Source,
    pub begins: bool,
    pub name: NameId,
}

impl RawMark {
    pub(crate) fn label(&self) -> Label {
        (self.name.0 << 2) | (u32::from(matches!(self.source, Source::Call(_))) << 1) | u32::from(self.begins)
    }
}

/// A mark's name, and whether it begins or ends an op or a call: what must agree for two marks of different steps to be the same mark.
pub(crate) type Label = u32;

/// Properly nested marks of one host thread over the whole trace.
#[derive(Debug, Clone)]
pub(crate) struct ThreadMarks {
    pub thread: ThreadId,
    pub marks: Vec<RawMark>,
    /// Events that ended after the event around them: cut to fit.
    pub clamped: usize,
    /// Largest nesting depth of an event, itself included.
    pub depth: usize,
}

/// Op or call, before nesting.
#[derive(Debug, Clone, Copy)]
struct HostEvent {
    start: Nanos,
    end: Nanos,
    /// Whether it is a call that launches. Of calls that begin at the same time the launch is the last: the others prepare it.
    launches: bool,
    /// Order among events that begin at the same time: lower numbers began first.
    turn: u64,
    source: Source,
    name: NameId,
}

const MICROSECOND: Nanos = Nanos(1_000);

/// Frequency of events that begin at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ties {
    /// Times have a finer resolution than the durations of events.
    Rare,
    /// Times are whole microseconds, as PyTorch wrote them before 2.3: the nesting follows the numbers of ops and
    /// calls, not their durations.
    Usual,
}

impl Ties {
    fn from_trace(trace: &Trace) -> Ties {
        let whole = |time: &Nanos| time.0 % MICROSECOND.0 == 0;
        let all = trace.ops.start.iter().chain(&trace.calls.start).chain(&trace.calls.dur).all(whole);
        if all { Ties::Usual } else { Ties::Rare }
    }

    fn turn(self, number: u64) -> u64 {
        if self == Ties::Usual { number } else { 0 }
    }
}

/// Nests the ops and calls of every thread. Step marks are excluded: they are windows, not work.
pub(crate) fn by_thread(trace: &Trace) -> Vec<ThreadMarks> {
    let mut events: Vec<Vec<HostEvent>> = vec![Vec::new(); trace.threads.len()];
    let ties = Ties::from_trace(trace);
    let launches: Vec<bool> =
        trace.names.iter().map(|(_, name)| ApiKind::from_name(name).launches()).collect();
    let step_names: Vec<bool> =
        trace.names.iter().map(|(_, name)| EventName::parse(name).is_step()).collect();
    for op in 0..trace.ops.len() {
        let name = trace.ops.name[op];
        if !step_names[name.0 as usize] {
            let start = trace.ops.start[op];
            events[trace.ops.thread[op].0 as usize].push(HostEvent {
                start,
                end: start + trace.ops.dur[op],
                turn: ties.turn(trace.ops.external_id[op]),
                launches: false,
                source: Source::Op(TraceOp::from(op)),
                name,
            });
        }
    }
    for call in 0..trace.calls.len() {
        let start = trace.calls.start[call];
        events[trace.calls.thread[call].0 as usize].push(HostEvent {
            start,
            end: start + trace.calls.dur[call],
            turn: ties.turn(trace.calls.correlation[call]),
            launches: launches[trace.calls.name[call].index()],
            source: Source::Call(TraceCall::from(call)),
            name: trace.calls.name[call],
        });
    }
    events
        .into_iter()
        .enumerate()
        .filter(|(_, events)| !events.is_empty())
        .map(|(thread, events)| nest(trace, ThreadId(thread as u32), events, ties))
        .collect()
}

fn nest(trace: &Trace, thread: ThreadId, mut events: Vec<HostEvent>, ties: Ties) -> ThreadMarks {
    // At the same time an op is outside a call; of two ops the longer is the outer one.
    events.sort_by_key(|event| {
        let call = matches!(event.source, Source::Call(_));
        match ties {
            Ties::Rare => (event.start, false, false, 0, Reverse(event.end), event.source),
            Ties::Usual => (event.start, call, event.launches, event.turn, Reverse(event.end), event.source),
        }
    });
    let mut marks = Vec::with_capacity(2 * events.len());
    let mut open: Vec<(Nanos, Source, NameId)> = Vec::new();
    let (mut clamped, mut depth) = (0, 0);
    for HostEvent { start, end, source, name, .. } in events {
        close_until(&mut open, &mut marks, start);
        let mut end = end;
        // Calls of one library follow one another: the microsecond that two of them share belongs to the second.
        if let (Ties::Usual, Source::Call(call), Some(last)) = (ties, source, open.last_mut())
            && let Source::Call(outer) = last.1
            && trace.calls.api[outer.index()] == trace.calls.api[call.index()]
            && (start - marks.last().map_or(start, |mark: &RawMark| mark.time) < MICROSECOND
                || last.0 - start <= MICROSECOND)
        {
            last.0 = start;
            close_until(&mut open, &mut marks, start);
        }
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
