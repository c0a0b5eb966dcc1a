//! The template step's rows, made from its marks.

use steptime_trace::{HostKind, Trace};

use crate::graph::{Blocking, Call, Mark, MarkKind, Op, Role, Thread};
use crate::marks::{self, RawMark, Source, ThreadMarks};
use crate::names::ApiKind;
use crate::names::EventName;
use crate::phase::Phase;

/// The template's rows.
pub(crate) struct Rows {
    pub threads: Vec<Thread>,
    pub ops: Vec<Op>,
    pub calls: Vec<Call>,
    pub marks: Vec<Mark>,
    /// The rows' calls in the trace, for the join by correlation.
    pub trace_calls: Vec<u32>,
    /// For each row of `threads`: its place among the trace's threads with marks.
    pub sources: Vec<usize>,
}

impl Rows {
    pub(crate) fn of(trace: &Trace, threads: &[ThreadMarks], order: &[usize], step: &[Vec<RawMark>]) -> Rows {
        let mut rows = Rows {
            threads: Vec::new(),
            ops: Vec::new(),
            calls: Vec::new(),
            marks: Vec::new(),
            trace_calls: Vec::new(),
            sources: Vec::new(),
        };
        for (position, &source) in order.iter().enumerate() {
            let marks = &step[source];
            let index = rows.threads.len() as u32;
            if marks.is_empty() && position > 0 {
                continue;
            }
            let id = threads[source].thread;
            let first_mark = rows.marks.len() as u32;
            rows.add_thread(trace, index, marks);
            let autograd = marks.iter().any(|m| EventName::of(trace.names.get(m.name)).is_backward());
            let role = match (position, autograd) {
                (0, _) => Role::Main,
                (_, true) => Role::Autograd,
                _ => Role::Other,
            };
            let end_mark = rows.marks.len() as u32;
            rows.threads.push(Thread { tid: trace.threads[id.0 as usize].tid, role, first_mark, end_mark });
            rows.sources.push(source);
        }
        rows
    }

    fn add_thread(&mut self, trace: &Trace, thread: u32, marks: &[RawMark]) {
        let first = self.marks.len() as u32;
        let last = (first + marks.len() as u32).saturating_sub(1);
        let mut open: Vec<u32> = Vec::new();
        let mut open_call: Vec<u32> = Vec::new();
        for mark in marks {
            let at = self.marks.len() as u32;
            let kind = match (mark.source, mark.begins) {
                (Source::Op(row), true) => {
                    let op = self.ops.len() as u32;
                    self.ops.push(Op {
                        name: mark.name,
                        annotation: trace.ops.kind[row as usize] == HostKind::Annotation,
                        thread,
                        parent: open.last().copied(),
                        begin: at,
                        end: at,
                        sequence: trace.ops.sequence[row as usize],
                        trace_op: row,
                        phase: Phase::Other,
                    });
                    open.push(op);
                    MarkKind::OpBegin(op)
                }
                (Source::Op(_), false) => {
                    let op = open.pop().unwrap_or_default();
                    self.ops[op as usize].end = at;
                    MarkKind::OpEnd(op)
                }
                (Source::Call(row), true) => {
                    let call = self.calls.len() as u32;
                    self.calls.push(Call {
                        api: mark.name,
                        kind: ApiKind::of(trace.names.get(mark.name)),
                        thread,
                        op: open.last().copied(),
                        begin: at,
                        end: at,
                        first_activity: 0,
                        end_activity: 0,
                        blocking: Blocking::Never,
                    });
                    self.trace_calls.push(row);
                    open_call.push(call);
                    MarkKind::CallBegin(call)
                }
                (Source::Call(_), false) => {
                    let call = open_call.pop().unwrap_or_default();
                    self.calls[call as usize].end = at;
                    MarkKind::CallEnd(call)
                }
            };
            let (after, wraps) = if at == first { (last, true) } else { (at - 1, false) };
            self.marks.push(Mark { kind, thread, after, wraps });
        }
    }

    /// The labels by which marks of other steps are matched with a thread's.
    pub(crate) fn labels(&self, marks: std::ops::Range<u32>) -> Vec<u64> {
        marks
            .map(|mark| {
                let (name, call, begins) = match self.marks[mark as usize].kind {
                    MarkKind::OpBegin(op) => (self.ops[op as usize].name, false, true),
                    MarkKind::OpEnd(op) => (self.ops[op as usize].name, false, false),
                    MarkKind::CallBegin(call) => (self.calls[call as usize].api, true, true),
                    MarkKind::CallEnd(call) => (self.calls[call as usize].api, true, false),
                };
                marks::label(name, call, begins)
            })
            .collect()
    }

    /// The call that begins at a mark.
    pub(crate) fn call_at(&self, mark: usize) -> Option<usize> {
        match self.marks[mark].kind {
            MarkKind::CallBegin(call) => Some(call as usize),
            _ => None,
        }
    }
}
