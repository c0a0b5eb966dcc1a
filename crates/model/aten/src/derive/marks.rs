//! Rows of the graph: marks, ops, calls and activities.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use steptime_graph::{
    Activity, ActivityId, ApiKind, Call, HostThreadId, Mark, MarkId, MarkKind, Op, OpId, OpOrigin, Phase,
    StepGraph, StreamId, Thread, TiVec,
};
use steptime_trace::{Bytes, NameId, Stream};

use super::OpLaunch;
use super::calls::{self, RuntimeCall};
use super::exchange_waits;
use super::threads::{ThreadSwitch, stays_open};
use super::tree::{OpTree, TreeKind};
use crate::kernel::KernelCall;

/// PyTorch's default stream, in the profiler's numbering.
const DEFAULT_STREAM: Stream = Stream { device: 0, stream: 7 };

/// Op that has begun but not ended.
struct OpenOp {
    node: u32,
    op: OpId,
    children: usize,
    planned: Vec<RuntimeCall>,
    done: usize,
}

struct Builder<'t> {
    tree: &'t OpTree,
    work: &'t [Option<(KernelCall, bool)>],
    children: &'t [Vec<u32>],
    graph: StepGraph,
    /// For each node, its op, its activities, and the number of children before its first call.
    ops: Vec<OpId>,
    waits_for: Vec<usize>,
    activities: Vec<Vec<ActivityId>>,
    open: Vec<OpenOp>,
    /// Stream of each lane.
    streams: BTreeMap<Lane, StreamId>,
}

/// Purpose of a stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    /// Stream of the script (0), or another one that a library uses concurrently.
    Own(u32),
    /// Collectives of a process group that run on their own stream.
    Group(String),
}

/// Builds the graph; also returns the launches in time order, and the node of each op.
pub(super) fn build(
    tree: &OpTree,
    children: &[Vec<u32>],
    work: &[Option<(KernelCall, bool)>],
    turns: &[ThreadSwitch],
) -> (StepGraph, Vec<OpLaunch>, TiVec<OpId, u32>) {
    let mut builder = Builder {
        tree,
        work,
        children,
        graph: StepGraph { streams: vec![DEFAULT_STREAM].into(), ..StepGraph::empty() },
        ops: vec![OpId::default(); tree.nodes.len()],
        waits_for: vec![0; tree.nodes.len()],
        activities: vec![Vec::new(); tree.nodes.len()],
        open: Vec::new(),
        streams: BTreeMap::from([(Lane::Own(0), StreamId(0))]),
    };
    // For each turn, the last mark passed by the thread that stops.
    let mut pauses = vec![MarkId::default(); turns.len()];
    let turn_after: BTreeMap<u32, usize> =
        turns.iter().enumerate().map(|(at, turn)| (turn.last, at)).rev().collect();
    let mut own: Vec<Vec<u32>> = vec![Vec::new(); tree.threads.len()];
    for (at, node) in (0u32..).zip(&tree.nodes) {
        own[node.thread as usize].push(at);
    }
    for (thread, own) in own.iter().enumerate() {
        builder.thread(thread, own, &turn_after, &mut pauses);
    }
    builder.link(turns, &pauses);
    let kernels = builder.launched();
    let mut nodes: TiVec<OpId, u32> = vec![0; builder.ops.len()].into();
    for (node, &op) in (0u32..).zip(&builder.ops) {
        nodes[op] = node;
    }
    let mut graph = builder.graph;
    graph.queue_delays = vec![None; graph.activities.len()].into();
    graph.held_back = vec![steptime_trace::Nanos::ZERO; graph.activities.len()].into();
    graph.tops = steptime_graph::tops(&graph.ops);
    graph.assign_phases();
    exchange_waits::wait(&mut graph, tree, |op| nodes[op] as usize);
    (graph, kernels, nodes)
}

impl Builder<'_> {
    /// Adds a thread with its nodes; `turn_after` has the turn that comes after a node.
    fn thread(
        &mut self,
        thread: usize,
        own: &[u32],
        turn_after: &BTreeMap<u32, usize>,
        pauses: &mut [MarkId],
    ) {
        let first = self.here();
        for (place, &at) in own.iter().enumerate() {
            self.begin(at);
            let next = own.get(place + 1);
            let around = next.and_then(|&next| self.tree.nodes[next as usize].parent);
            let turn = turn_after.get(&at).copied();
            let mut paused = false;
            while let Some(inner) = self.open.last().map(|open| open.node).filter(|&n| Some(n) != around) {
                if let Some(turn) = turn
                    && !paused
                    && stays_open(self.tree, inner, at)
                {
                    pauses[turn] = self.here().previous();
                    paused = true;
                }
                self.end();
            }
            if let Some(turn) = turn.filter(|_| !paused) {
                pauses[turn] = self.here().previous();
            }
        }
        let end = self.here();
        if end > first {
            self.graph.marks[first].after = end.previous();
            self.graph.marks[first].wraps = true;
        }
        let source = self.tree.threads[thread];
        let row = Thread { tid: source.tid, role: source.role, first_mark: first, end_mark: end };
        self.graph.threads.push(row);
    }

    fn begin(&mut self, node: u32) {
        let at = node as usize;
        self.calls_before_child();
        if let Some(open) = self.open.last_mut() {
            open.children += 1;
        }
        let source = &self.tree.nodes[at];
        let name = self.graph.names.intern(&source.call.name);
        let op = self.graph.ops.next_key();
        let mark = self.mark(MarkKind::OpBegin(op), HostThreadId(source.thread));
        self.graph.ops.push(Op {
            name,
            annotation: source.kind == TreeKind::Annotation,
            thread: HostThreadId(source.thread),
            parent: self.open.last().map(|open| open.op),
            begin: mark,
            end: mark,
            sequence: -1,
            origin: source.origin.map_or(OpOrigin::Derived, OpOrigin::Execution),
            phase: Phase::Other,
        });
        self.ops[at] = op;
        let planned = match (exchange_waits::calls(self.tree, at, self.children), &self.work[at]) {
            (Some(calls), _) => calls,
            (None, None) => Vec::new(),
            (None, Some((call, _))) => {
                let names =
                    self.children[at].iter().map(|&child| &*self.tree.nodes[child as usize].call.name);
                calls::derive(&source.call, call, &names.collect::<Vec<_>>())
            }
        };
        self.waits_for[at] = planned.first().map_or(0, |call| call.after_children);
        self.open.push(OpenOp { node, op, children: 0, planned, done: 0 });
    }

    fn end(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.children = usize::MAX;
        }
        self.calls_before_child();
        if let Some(open) = self.open.pop() {
            let thread = self.tree.nodes[open.node as usize].thread;
            let mark = self.mark(MarkKind::OpEnd(open.op), HostThreadId(thread));
            self.graph.ops[open.op].end = mark;
        }
    }

    /// Adds the calls of the innermost op that come before its next child, or before its end.
    fn calls_before_child(&mut self) {
        while let Some(open) = self.open.last_mut()
            && let Some(planned) = open.planned.get(open.done).filter(|p| p.after_children <= open.children)
        {
            let (planned, op, node) = (planned.clone(), open.op, open.node);
            open.done += 1;
            self.call(&planned, op, node);
        }
    }

    fn call(&mut self, planned: &RuntimeCall, op: OpId, node: u32) {
        let thread = self.graph.ops[op].thread;
        let call = self.graph.calls.next_key();
        let begin = self.mark(MarkKind::CallBegin(call), thread);
        let end = self.mark(MarkKind::CallEnd(call), thread);
        let first_activity = self.graph.activities.next_key();
        if let Some(work) = &planned.work {
            let exchange = exchange_waits::launched(self.tree, node as usize);
            let stream = self.stream(match exchange.filter(|exchange| exchange.beside) {
                Some(exchange) => Lane::Group(exchange.collective.group.name.clone()),
                None => Lane::Own(work.stream),
            });
            let collectives = &mut self.graph.collectives;
            let collective =
                exchange.map(|exchange| collectives.push_and_get_key(exchange.collective.clone()));
            let name: NameId = self.graph.names.intern(work.name);
            self.graph.activities.push(Activity {
                kind: work.kind,
                name,
                stream,
                call,
                bytes: Bytes(work.bytes),
                recorded: None,
                launch: None,
                collective,
            });
            self.activities[node as usize].push(first_activity);
        }
        self.graph.calls.push(Call {
            api: self.graph.names.intern(planned.api),
            kind: ApiKind::from_name(planned.api),
            thread,
            op: Some(op),
            begin,
            end,
            first_activity,
            end_activity: self.graph.activities.next_key(),
            blocking: planned.blocking,
        });
    }

    fn stream(&mut self, lane: Lane) -> StreamId {
        let streams = &mut self.graph.streams;
        *self.streams.entry(lane).or_insert_with(|| {
            let stream = DEFAULT_STREAM.stream + streams.len() as i64;
            streams.push_and_get_key(Stream { stream, ..DEFAULT_STREAM })
        })
    }

    /// Returns the launches in time order. The own work of an op comes after that of the children before it.
    fn launched(&mut self) -> Vec<OpLaunch> {
        let mut last: Vec<usize> = (0..self.tree.nodes.len()).collect();
        for at in (0..last.len()).rev() {
            if let Some(parent) = self.tree.nodes[at].parent {
                last[parent as usize] = last[parent as usize].max(last[at]);
            }
        }
        let mut order: Vec<(usize, Reverse<usize>)> = (0..last.len())
            .map(|at| {
                let before = self.waits_for[at].min(self.children[at].len()).checked_sub(1);
                (before.map_or(at, |child| last[self.children[at][child] as usize]), Reverse(at))
            })
            .collect();
        order.sort_unstable();
        let launched = order.into_iter().filter_map(|(_, Reverse(at))| {
            let (call, known) = self.work[at].clone()?;
            let activities = std::mem::take(&mut self.activities[at]);
            let places = self.tree.nodes[at].call.places(&call);
            Some(OpLaunch { op: self.ops[at], places, call, activities, known })
        });
        launched.collect()
    }

    fn mark(&mut self, kind: MarkKind, thread: HostThreadId) -> MarkId {
        let at = self.here();
        let after = MarkId(at.0.saturating_sub(1));
        self.graph.marks.push(Mark { kind, thread, after, wraps: false });
        at
    }

    fn here(&self) -> MarkId {
        self.graph.marks.next_key()
    }

    /// Makes the mark with which a thread continues come after the last mark of the thread that stopped.
    fn link(&mut self, turns: &[ThreadSwitch], pauses: &[MarkId]) {
        let mut paused: Vec<Option<MarkId>> = vec![None; self.tree.threads.len()];
        for (turn, &pause) in turns.iter().zip(pauses) {
            let thread = self.tree.nodes[turn.next as usize].thread as usize;
            paused[self.tree.nodes[turn.last as usize].thread as usize] = Some(pause);
            let row = &self.graph.threads[HostThreadId::from(thread)];
            let next = paused[thread].map_or(row.first_mark, MarkId::next);
            let (mark, wraps) = if next < row.end_mark { (next, false) } else { (row.first_mark, true) };
            self.graph.marks[mark].after = pause;
            self.graph.marks[mark].wraps = wraps;
        }
    }
}
