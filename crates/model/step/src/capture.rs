//! Captured ops: all their launches are combined in one call, as a CUDA graph.

use rustc_hash::FxHashMap;
use steptime_graph::{
    ApiKind, Blocking, Call, CallId, HostThreadId, MarkId, MarkKind, Op, OpId, OpOrigin, Phase, StepGraph,
    Thread, TiVec, tops,
};

use crate::nodes;
use crate::schedule::{ReusedRows, ScheduledStep, marks};
use crate::step::StepIr;

/// The call that launches a captured graph.
const LAUNCH: &str = "cudaGraphLaunch";
/// The op around it.
const REPLAY: &str = "CUDA graph";

/// The same step where each stretch of captured ops is launched by one call. Rows carry over from `scheduled`.
///
/// A stretch ends where an uncaptured op launches work, or waits. Where the step has an order of nodes, they wait for one another by their data alone.
#[must_use]
pub fn captured(step: &StepIr, scheduled: &ScheduledStep) -> ScheduledStep {
    let from = &scheduled.graph;
    let is_captured = captured_ops(step, scheduled);
    let mut stretches = stretches(from, &is_captured);
    if let Some(order) = &step.nodes {
        stretches =
            stretches.into_iter().map(|calls| nodes::in_order(step, order, scheduled, calls)).collect();
    }
    let mut builder = Builder {
        from,
        gone: not_launched(from, &is_captured),
        stretch_of: FxHashMap::default(),
        stretches,
        graph: StepGraph {
            names: from.names.clone(),
            streams: from.streams.clone(),
            coverage: from.coverage,
            collectives: from.collectives.clone(),
            device: from.device.clone(),
            ..StepGraph::empty()
        },
        ops: TiVec::new(),
        carried: ReusedRows::default(),
        new_op: vec![None; from.ops.len()].into(),
        around: Vec::new(),
    };
    builder.place();
    for thread in from.threads.keys() {
        builder.thread(thread, scheduled);
    }
    marks::link(&mut builder.graph, from, &mut builder.carried, &FxHashMap::default(), &|_| false);
    builder.carried.waits(&mut builder.graph, from);
    builder.graph.tops = tops(&builder.graph.ops);
    builder.graph.assign_phases();
    let mut captured = ScheduledStep { graph: builder.graph, ops: builder.ops, carried: builder.carried };
    if let Some(nodes) = &step.nodes {
        nodes::order(step, nodes, scheduled, &mut captured);
    }
    captured
}

/// For each op of a graph, whether a CUDA graph launches its kernels.
fn captured_ops(step: &StepIr, scheduled: &ScheduledStep) -> TiVec<OpId, bool> {
    let mut captured: TiVec<OpId, bool> = TiVec::with_capacity(scheduled.graph.ops.len());
    for (at, row) in scheduled.graph.ops.iter_enumerated() {
        let around = row.parent.is_some_and(|parent| captured[parent]);
        captured.push(around || step.ops[scheduled.ops[at]].captured);
    }
    captured
}

/// Calls that are launched together, stretch by stretch, in order.
fn stretches(graph: &StepGraph, captured: &TiVec<OpId, bool>) -> Vec<Vec<CallId>> {
    let mut all: Vec<Vec<CallId>> = vec![Vec::new()];
    for call in graph.calls_by_hand_off() {
        let row = &graph.calls[call];
        let inside = row.op.is_some_and(|op| captured[op]);
        if inside && row.has_activities() {
            all[..].last_mut().into_iter().for_each(|stretch| stretch.push(call));
        } else if !inside && (row.has_activities() || row.blocking != Blocking::Never) {
            all.push(Vec::new());
        }
    }
    all.retain(|stretch| !stretch.is_empty());
    all
}

/// Ops that no longer run by themselves: captured ones, and annotations with only such ops inside.
fn not_launched(graph: &StepGraph, captured: &TiVec<OpId, bool>) -> TiVec<OpId, bool> {
    let mut gone = captured.clone();
    let mut keeps: TiVec<OpId, bool> = vec![false; graph.ops.len()].into();
    let mut has: TiVec<OpId, bool> = vec![false; graph.ops.len()].into();
    for (at, row) in graph.ops.iter_enumerated().rev() {
        let stays = !captured[at] && (!row.annotation || keeps[at] || !has[at]);
        gone[at] = !stays;
        if let Some(parent) = row.parent {
            keeps[parent] |= stays;
            has[parent] = true;
        }
    }
    gone
}

struct Builder<'s> {
    from: &'s StepGraph,
    gone: TiVec<OpId, bool>,
    stretches: Vec<Vec<CallId>>,
    /// Stretches by the mark of the main thread before which they are launched.
    stretch_of: FxHashMap<MarkId, Vec<CallId>>,
    graph: StepGraph,
    ops: TiVec<OpId, crate::OpId>,
    carried: ReusedRows,
    new_op: TiVec<OpId, Option<OpId>>,
    /// The kept ops around the current mark, the innermost last.
    around: Vec<OpId>,
}

impl Builder<'_> {
    /// Places stretches. A stretch is launched where its first op on the main thread began; one without such an op, with the preceding stretch.
    fn place(&mut self) {
        let mut last: Option<MarkId> = None;
        for stretch in std::mem::take(&mut self.stretches) {
            let on_main = |call: &CallId| self.from.calls[*call].thread == HostThreadId::MAIN;
            let first = stretch.iter().find(|call| on_main(call)).map(|&call| self.from.calls[call].begin);
            let at = first.or(last).unwrap_or(self.from.threads[HostThreadId::MAIN].first_mark);
            last = Some(at);
            self.stretch_of.entry(at).or_default().extend(stretch);
        }
    }

    fn thread(&mut self, thread: HostThreadId, scheduled: &ScheduledStep) {
        let row = &self.from.threads[thread];
        let first_mark = self.graph.marks.next_key();
        let idle = thread != HostThreadId::MAIN
            && self.from.ops.iter_enumerated().all(|(at, op)| op.thread != thread || self.gone[at]);
        for mark in row.first_mark.until(row.end_mark) {
            if let Some(stretch) = self.stretch_of.remove(&mark) {
                self.launch(&stretch, thread, scheduled);
            }
            if !idle {
                self.keep(mark, scheduled);
            }
        }
        let end_mark = self.graph.marks.next_key();
        self.graph.threads.push(Thread { first_mark, end_mark, ..row.clone() });
    }

    /// Keeps a mark, unless its op or call is gone.
    fn keep(&mut self, mark: MarkId, scheduled: &ScheduledStep) {
        let thread = self.from.marks[mark].thread;
        match self.from.marks[mark].kind {
            MarkKind::OpBegin(op) if !self.gone[op] => {
                let at = self.graph.ops.next_key();
                let begin = self.mark(MarkKind::OpBegin(at), thread, Some(mark));
                let row = self.from.ops[op];
                let parent = row.parent.and_then(|parent| self.new_op[parent]);
                self.graph.ops.push(Op { begin, end: begin, parent, ..row });
                self.ops.push(scheduled.ops[op]);
                self.new_op[op] = Some(at);
                self.around.push(at);
            }
            MarkKind::OpEnd(op) => {
                if let Some(at) = self.new_op[op] {
                    self.around.pop();
                    self.graph.ops[at].end = self.mark(MarkKind::OpEnd(at), thread, Some(mark));
                }
            }
            MarkKind::CallBegin(call) if !self.from.calls[call].op.is_some_and(|op| self.gone[op]) => {
                let row = self.from.calls[call];
                let at = self.graph.calls.next_key();
                let begin = self.mark(MarkKind::CallBegin(at), thread, Some(row.begin));
                let end = self.mark(MarkKind::CallEnd(at), thread, Some(row.end));
                let first_activity = self.graph.activities.next_key();
                row.activities().for_each(|activity| self.activity(activity, at));
                let end_activity = self.graph.activities.next_key();
                let op = row.op.and_then(|op| self.new_op[op]);
                self.graph.calls.push(Call { op, begin, end, first_activity, end_activity, ..row });
                self.carried.calls.push(Some(call));
            }
            _ => {}
        }
    }

    fn activity(&mut self, was: steptime_graph::ActivityId, call: CallId) {
        self.graph.activities.push(steptime_graph::Activity { call, ..self.from.activities[was] });
        self.graph.queue_delays.push(self.from.queue_delays[was]);
        self.graph.held_back.push(self.from.held_back[was]);
        self.carried.activities.push(Some(was));
    }

    /// The launch of a graph.
    fn launch(&mut self, stretch: &[CallId], thread: HostThreadId, scheduled: &ScheduledStep) {
        let (op, at) = (self.graph.ops.next_key(), self.graph.calls.next_key());
        let begin_op = self.mark(MarkKind::OpBegin(op), thread, None);
        let begin = self.mark(MarkKind::CallBegin(at), thread, None);
        let end = self.mark(MarkKind::CallEnd(at), thread, None);
        let end_op = self.mark(MarkKind::OpEnd(op), thread, None);
        let first_activity = self.graph.activities.next_key();
        for &call in stretch {
            self.from.calls[call].activities().for_each(|activity| self.activity(activity, at));
        }
        self.graph.ops.push(Op {
            name: self.graph.names.intern(REPLAY),
            annotation: false,
            thread,
            parent: self.around.last().copied(),
            begin: begin_op,
            end: end_op,
            sequence: -1,
            origin: OpOrigin::Derived,
            phase: Phase::Other,
        });
        let first = stretch.first().and_then(|&call| self.from.calls[call].op);
        self.ops.push(first.map_or_else(Default::default, |op| scheduled.ops[op]));
        self.graph.calls.push(Call {
            api: self.graph.names.intern(LAUNCH),
            kind: ApiKind::GraphLaunch,
            thread,
            op: Some(op),
            begin,
            end,
            first_activity,
            end_activity: self.graph.activities.next_key(),
            blocking: Blocking::Never,
        });
        self.carried.calls.push(None);
    }

    fn mark(&mut self, kind: MarkKind, thread: HostThreadId, recorded: Option<MarkId>) -> MarkId {
        marks::push(&mut self.graph, &mut self.carried, kind, thread, recorded, None)
    }
}
