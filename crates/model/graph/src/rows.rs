//! Rows of the template step, made from its marks.

use steptime_trace::{HostKind, Trace};
use typed_index_collections::TiVec;

use crate::ids::{ActivityId, CallId, HostThreadId, MarkId, OpId, TraceCall};
use crate::marks::{RawMark, Source, ThreadMarks};
use crate::names::{ApiKind, EventName};
use crate::tables::{Blocking, Call, Mark, MarkKind, Op, OpOrigin, Phase, Role, Thread};

/// Rows of the template.
pub(crate) struct Rows {
    pub threads: TiVec<HostThreadId, Thread>,
    pub ops: TiVec<OpId, Op>,
    pub calls: TiVec<CallId, Call>,
    pub marks: TiVec<MarkId, Mark>,
    /// Calls of the rows in the trace, for the join by correlation.
    pub trace_calls: TiVec<CallId, TraceCall>,
    /// For each row of `threads`: its index among the trace's threads with marks.
    pub sources: TiVec<HostThreadId, usize>,
}

impl Rows {
    pub(crate) fn build(
        trace: &Trace,
        threads: &[ThreadMarks],
        order: &[usize],
        step: &[Vec<RawMark>],
    ) -> Rows {
        let mut rows = Rows {
            threads: TiVec::new(),
            ops: TiVec::new(),
            calls: TiVec::new(),
            marks: TiVec::new(),
            trace_calls: TiVec::new(),
            sources: TiVec::new(),
        };
        for (position, &source) in order.iter().enumerate() {
            let marks = &step[source];
            let index = rows.threads.next_key();
            if marks.is_empty() && position > 0 {
                continue;
            }
            let id = threads[source].thread;
            let first_mark = rows.marks.next_key();
            rows.add_thread(trace, index, marks);
            let autograd = marks.iter().any(|m| EventName::parse(trace.names.get(m.name)).is_backward());
            let role = match (position, autograd) {
                (0, _) => Role::Main,
                (_, true) => Role::Autograd,
                _ => Role::Other,
            };
            let end_mark = rows.marks.next_key();
            rows.threads.push(Thread { tid: trace.threads[id.index()].tid, role, first_mark, end_mark });
            rows.sources.push(source);
        }
        rows
    }

    fn add_thread(&mut self, trace: &Trace, thread: HostThreadId, marks: &[RawMark]) {
        let first = self.marks.next_key();
        let last = MarkId::from((first.index() + marks.len()).saturating_sub(1));
        let begins = |op: bool| {
            marks.iter().filter(|mark| mark.begins && matches!(mark.source, Source::Op(_)) == op).count()
        };
        self.ops.reserve(begins(true));
        self.calls.reserve(begins(false));
        self.trace_calls.reserve(begins(false));
        self.marks.reserve(marks.len());
        let mut open: Vec<OpId> = Vec::new();
        let mut open_call: Vec<CallId> = Vec::new();
        for mark in marks {
            let at = self.marks.next_key();
            let kind = match (mark.source, mark.begins) {
                (Source::Op(row), true) => {
                    let op = self.ops.push_and_get_key(Op {
                        name: mark.name,
                        annotation: trace.ops.kind[row.index()] == HostKind::Annotation,
                        thread,
                        parent: open.last().copied(),
                        begin: at,
                        end: at,
                        sequence: trace.ops.sequence[row.index()],
                        origin: OpOrigin::Timing(row),
                        phase: Phase::Other,
                    });
                    open.push(op);
                    MarkKind::OpBegin(op)
                }
                (Source::Op(_), false) => {
                    let op = open.pop().unwrap_or_default();
                    self.ops[op].end = at;
                    MarkKind::OpEnd(op)
                }
                (Source::Call(row), true) => {
                    let call = self.calls.push_and_get_key(Call {
                        api: mark.name,
                        kind: ApiKind::from_name(trace.names.get(mark.name)),
                        thread,
                        op: open.last().copied(),
                        begin: at,
                        end: at,
                        first_activity: ActivityId(0),
                        end_activity: ActivityId(0),
                        blocking: Blocking::Never,
                    });
                    self.trace_calls.push(row);
                    open_call.push(call);
                    MarkKind::CallBegin(call)
                }
                (Source::Call(_), false) => {
                    let call = open_call.pop().unwrap_or_default();
                    self.calls[call].end = at;
                    MarkKind::CallEnd(call)
                }
            };
            let (after, wraps) = if at == first { (last, true) } else { (at.previous(), false) };
            self.marks.push(Mark { kind, thread, after, wraps });
        }
    }

    /// Returns the call that begins at a mark.
    pub(crate) fn call_at(&self, mark: MarkId) -> Option<CallId> {
        match self.marks[mark].kind {
            MarkKind::CallBegin(call) => Some(call),
            _ => None,
        }
    }
}
