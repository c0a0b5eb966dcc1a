//! The schedule of a step: marks, calls and activities, carried over from the recording where nothing changed.

pub(crate) mod marks;
mod plan;
mod reused_rows;
mod rounds;
mod scheduled;
mod streams;

use rustc_hash::FxHashMap;
use steptime_aten::OpSet;
use steptime_graph::{
    Activity, ApiKind, Blocking, Call, CallId, Collective, CollectiveId, HostThreadId, MarkId, MarkKind, Op,
    Phase, StepGraph, StreamId, Thread, TiVec, tops,
};
use steptime_trace::Bytes;

use self::marks::Items;
use self::plan::{OwnCalls, PlannedCall};
pub use self::reused_rows::ReusedRows;
use self::rounds::Rounds;
pub use self::scheduled::ScheduledStep;
use self::streams::ExtraStreams;
use crate::exchange_bytes;
use crate::ids::OpId;
use crate::step::StepIr;

/// Makes marks, calls and activities of a step. `base` is the graph from which the step was made; `before` is the step as made from it,
/// before any change.
///
/// Recorded and unchanged rows carry over: an unchanged step gives `base` again. An inserted op, or an op whose arguments require other
/// launches,
/// gets the calls that its kernels need.
#[must_use]
pub fn schedule(step: &StepIr, before: &StepIr, base: &StepGraph, set: &OpSet) -> ScheduledStep {
    Builder::new(step, before, base, set).run()
}

struct Builder<'s> {
    step: &'s StepIr,
    before: &'s StepIr,
    base: &'s StepGraph,
    set: &'s OpSet,
    /// Recorded items inside each op, and outside of all ops.
    items: Items,
    graph: StepGraph,
    ops: TiVec<steptime_graph::OpId, OpId>,
    carried: ReusedRows,
    rounds: Rounds,
    /// For recorded ops that are scheduled anew, as inserted ones are: recorded mark to new mark. Hand-offs between threads move to the
    /// new mark.
    stands: FxHashMap<MarkId, MarkId>,
    /// The stream of new launches.
    stream: StreamId,
    /// Additional streams.
    others: ExtraStreams,
}

impl<'s> Builder<'s> {
    fn new(step: &'s StepIr, before: &'s StepIr, base: &'s StepGraph, set: &'s OpSet) -> Builder<'s> {
        let mut graph = StepGraph {
            names: base.names.clone(),
            streams: base.streams.clone(),
            step_source: base.step_source,
            coverage: base.coverage,
            collectives: base.collectives.clone(),
            device: base.device.clone(),
            ..StepGraph::empty()
        };
        let others = ExtraStreams::add_to(step, &mut graph);
        Builder {
            step,
            before,
            base,
            set,
            items: Items::from_graph(base),
            graph,
            ops: TiVec::new(),
            carried: ReusedRows::default(),
            rounds: Rounds::default(),
            stands: FxHashMap::default(),
            stream: streams::busiest(base),
            others,
        }
    }

    fn run(mut self) -> ScheduledStep {
        for thread in self.base.threads.keys() {
            let first_mark = self.graph.marks.next_key();
            self.inside(None, thread);
            let (row, end_mark) = (&self.base.threads[thread], self.graph.marks.next_key());
            self.graph.threads.push(Thread { tid: row.tid, role: row.role, first_mark, end_mark });
        }
        let (step, base, ops) = (self.step, self.base, &self.ops);
        let put_in = |op: steptime_graph::OpId| {
            usize::from(ops[op]) >= base.ops.len() && step.ops[ops[op]].again.is_none()
        };
        marks::link(&mut self.graph, base, &mut self.carried, &self.stands, &put_in);
        self.rounds.link(&mut self.graph, self.base, &mut self.carried);
        self.carried.waits(&mut self.graph, self.base);
        let streams = self.others.numbered(self.stream);
        streams::wait_for_events(self.step, &self.ops, &mut self.graph, &streams);
        if let Some(stream) = self.others.ahead {
            streams::wait_for_copies(&mut self.graph, stream);
        }
        self.graph.tops = tops(&self.graph.ops);
        self.graph.assign_phases();
        ScheduledStep { graph: self.graph, ops: self.ops, carried: self.carried }
    }

    /// Adds an op with all ops inside it.
    fn op(&mut self, op: OpId, parent: Option<steptime_graph::OpId>) {
        let row = &self.step.ops[op];
        let recorded = self.step.recorded(op).map(|at| (at, self.base.ops[at]));
        let again = row.again.is_some();
        let at = self.graph.ops.next_key();
        let begin =
            self.mark(MarkKind::OpBegin(at), row.thread, recorded.map(|(_, row)| row.begin), Some(op));
        self.graph.ops.push(Op {
            name: self.graph.names.intern(&row.name),
            annotation: row.annotation,
            thread: row.thread,
            parent,
            begin,
            end: begin,
            sequence: row.sequence.filter(|_| !again).unwrap_or(-1),
            origin: recorded.map_or(steptime_graph::OpOrigin::Derived, |(_, row)| row.origin),
            phase: Phase::Other,
        });
        self.ops.push(op);
        self.inside(Some((op, at)), row.thread);
        let end = self.mark(MarkKind::OpEnd(at), row.thread, recorded.map(|(_, row)| row.end), Some(op));
        self.graph.ops[at].end = end;
        let stands = steptime_graph::OpId(op.0);
        if let (None, None, Some(was)) = (recorded, row.again, self.base.ops.get(stands)) {
            self.stands.extend([(was.begin, begin), (was.end, end)]);
        }
    }

    /// Adds everything inside an op or thread: the inner ops, and between them the recorded calls, or the calls that the op's kernels need.
    fn inside(&mut self, around: Option<(OpId, steptime_graph::OpId)>, thread: HostThreadId) {
        let step = self.step;
        let at = around.map(|(_, at)| at);
        let children = match around {
            Some((op, _)) => &step.ops[op].children,
            None => &step.threads[thread],
        };
        let own = match around {
            Some((op, _)) => plan::own_calls(step, self.before, self.base, &self.items, op, self.set),
            None => OwnCalls::AsRecorded,
        };
        if let OwnCalls::Anew(planned) = own {
            return self.planned(children, &planned, at, thread);
        }
        let recorded = match around {
            Some((op, _)) => step.recorded(op).map(|op| self.items.within(op)),
            None => Some(self.items.outermost(thread)),
        };
        let recorded = recorded.unwrap_or_default().to_vec();
        let mut calls = match own {
            OwnCalls::Adjusted(planned) => planned,
            _ => Vec::new(),
        }
        .into_iter();
        // Calls before the first inner op stay first, even if the inner ops changed.
        let mut next = recorded.iter().take_while(|item| matches!(item, marks::Item::Call(_))).count();
        self.recorded_calls(&recorded[..next], &mut calls, at);
        for &child in children {
            if let Some(place) = step.recorded(child).and_then(|op| marks::find(&recorded[next..], op)) {
                self.recorded_calls(&recorded[next..next + place], &mut calls, at);
                next += place + 1;
            }
            self.op(child, at);
        }
        self.recorded_calls(&recorded[next..], &mut calls, at);
    }

    fn recorded_calls(
        &mut self,
        items: &[marks::Item],
        adjusted: &mut impl Iterator<Item = PlannedCall>,
        op: Option<steptime_graph::OpId>,
    ) {
        for item in items {
            if let marks::Item::Call(call) = *item {
                let other = adjusted.next();
                self.recorded_call(call, other.as_ref(), op);
            }
        }
    }

    /// Adds a recorded call; `other` has the bytes and the kind of wait, where these changed.
    fn recorded_call(&mut self, call: CallId, other: Option<&PlannedCall>, op: Option<steptime_graph::OpId>) {
        let source = &self.base.calls[call];
        let at = self.graph.calls.next_key();
        let within = op.map(|op| self.ops[op]);
        let again = within.is_some_and(|op| self.step.ops[op].again.is_some());
        let thread = op.map_or(source.thread, |op| self.graph.ops[op].thread);
        let begin = self.mark(MarkKind::CallBegin(at), thread, Some(source.begin), within);
        let end = self.mark(MarkKind::CallEnd(at), thread, Some(source.end), within);
        let first_activity = self.graph.activities.next_key();
        for activity in source.activities() {
            let mut row = self.base.activities[activity];
            row.call = at;
            row.stream = self.moved(op).unwrap_or(row.stream);
            if let Some(work) = other.and_then(|planned| planned.work.as_ref()).filter(|work| work.bytes > 0)
            {
                row.bytes = Bytes(work.bytes);
            }
            row.collective = row.collective.map(|own| self.recorded_exchange(own, within));
            self.graph.activities.push(row);
            self.graph.queue_delays.push(self.base.queue_delays[activity]);
            self.graph.held_back.push(self.base.held_back[activity]);
            self.carried.activities.push(Some(activity).filter(|_| !again));
        }
        let blocking = if again { rounds::own_wait(source, first_activity) } else { source.blocking };
        self.graph.calls.push(Call {
            op,
            thread,
            begin,
            end,
            first_activity,
            end_activity: self.graph.activities.next_key(),
            blocking: other.and_then(|planned| planned.blocks_otherwise).unwrap_or(blocking),
            ..*source
        });
        self.carried.calls.push(Some(call).filter(|_| !again));
    }

    /// The collective of a recorded op, with as many bytes as its tensors have now.
    fn recorded_exchange(&mut self, own: CollectiveId, op: Option<OpId>) -> CollectiveId {
        let factor = op.and_then(|op| exchange_bytes::change_of_bytes(self.step, self.before, op));
        let Some(factor) = factor.filter(|factor| *factor != 1.0) else { return own };
        let scaled = |bytes: Bytes| Bytes((bytes.0 as f64 * factor).round() as u64);
        let now = self.graph.collectives[own].clone();
        let sent_to = now.sent_to.iter().map(|&bytes| scaled(bytes)).collect();
        let now = Collective { sent: scaled(now.sent), received: scaled(now.received), sent_to, ..now };
        self.graph.collectives.push_and_get_key(now)
    }

    /// Adds ops with new calls before, between and after them.
    fn planned(
        &mut self,
        children: &[OpId],
        planned: &[PlannedCall],
        op: Option<steptime_graph::OpId>,
        thread: HostThreadId,
    ) {
        let mut left = planned.iter().peekable();
        for (before, &child) in children.iter().enumerate() {
            while let Some(call) = left.next_if(|call| call.after_children <= before) {
                self.planned_call(call, op, thread);
            }
            self.op(child, op);
        }
        for call in left {
            self.planned_call(call, op, thread);
        }
    }

    fn planned_call(
        &mut self,
        planned: &PlannedCall,
        op: Option<steptime_graph::OpId>,
        thread: HostThreadId,
    ) {
        let at = self.graph.calls.next_key();
        let begin = self.mark(MarkKind::CallBegin(at), thread, None, None);
        let end = self.mark(MarkKind::CallEnd(at), thread, None, None);
        let first_activity = self.graph.activities.next_key();
        if let Some(work) = &planned.work {
            let name = self.graph.names.intern(work.name);
            let exchange = op.map(|op| self.ops[op]).and_then(|op| Some((op, self.step.ops[op].exchange?)));
            let collective = exchange.map(|(op, exchange)| exchange.collective(self.step.call(op)));
            self.graph.activities.push(Activity {
                kind: work.kind,
                name,
                stream: self.moved(op).unwrap_or(self.stream),
                call: at,
                bytes: Bytes(work.bytes),
                recorded: None,
                launch: None,
                collective: collective.map(|own| self.graph.collectives.push_and_get_key(own)),
            });
            self.graph.queue_delays.push(None);
            self.graph.held_back.push(steptime_trace::Nanos::ZERO);
            self.carried.activities.push(None);
        }
        self.graph.calls.push(Call {
            api: self.graph.names.intern(planned.api),
            kind: ApiKind::from_name(planned.api),
            thread,
            op,
            begin,
            end,
            first_activity,
            end_activity: self.graph.activities.next_key(),
            blocking: match planned.blocking {
                Blocking::Streams(steptime_graph::StreamSet::One(_)) => {
                    Blocking::Streams(steptime_graph::StreamSet::One(self.stream))
                }
                other => other,
            },
        });
        self.carried.calls.push(None);
    }

    /// The stream to which a rule moved an op; `None` if none did.
    fn moved(&self, op: Option<steptime_graph::OpId>) -> Option<StreamId> {
        self.others.stream_of(&self.step.ops[self.ops[op?]])
    }

    fn mark(
        &mut self,
        kind: MarkKind,
        thread: HostThreadId,
        recorded: Option<steptime_graph::MarkId>,
        op: Option<OpId>,
    ) -> steptime_graph::MarkId {
        let row = op.map(|op| &self.step.ops[op]);
        let again = row.and_then(|row| row.again);
        let (was, like) = if again.is_some() { (None, recorded) } else { (recorded, None) };
        let at = marks::push(&mut self.graph, &mut self.carried, kind, thread, was, like);
        // Only a repetition of an original op belongs to a round: the recording has no hand-offs for a repetition of a repetition.
        let repeats = again.filter(|&again| self.step.ops[again].again.is_none());
        if let (Some(was), Some(row), Some(_)) = (recorded, row, repeats) {
            self.rounds.add(was, row.round, at);
        }
        at
    }
}
