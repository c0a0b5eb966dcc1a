//! The order in which ops begin, over all threads.

use steptime_graph::execution::NodeId;
use steptime_graph::{HostThreadId, MarkId, MarkKind, StepGraph, TiVec};

use super::Export;
use crate::ids::OpId;
use crate::step::StepIr;

/// Ops in the order of the recording where both candidates were recorded, and always after the ops that they wait for. Where threads wait for one
/// another in a cycle, the remaining ops follow thread by thread.
pub(super) fn begins(export: &Export<'_>) -> Vec<OpId> {
    let (step, scheduled) = (export.step, export.scheduled);
    let graph = &scheduled.graph;
    let mut next: TiVec<HostThreadId, MarkId> = graph.threads.iter().map(|row| row.first_mark).collect();
    // The latest node that began on each thread: ops that were not recorded take the position of their thread.
    let mut reached: TiVec<HostThreadId, Option<NodeId>> = vec![None; graph.threads.len()].into();
    let mut begun = Vec::with_capacity(graph.ops.len());
    loop {
        let moved = pass_others(graph, &mut next);
        let ready = graph.threads.keys().filter(|&thread| is_ready(graph, &next, thread));
        let at = |thread: HostThreadId| {
            let op = begin(graph, next[thread]).map(|op| scheduled.ops[op]);
            op.and_then(|op| node(step, op)).max(reached[thread])
        };
        match ready.min_by_key(|&thread| (at(thread), thread)) {
            Some(thread) => {
                reached[thread] = at(thread);
                begun.extend(begin(graph, next[thread]).map(|op| scheduled.ops[op]));
                next[thread] = next[thread].next();
            }
            None if !moved => break,
            None => {}
        }
    }
    for (thread, row) in graph.threads.iter_enumerated() {
        let left = next[thread].until(row.end_mark);
        begun.extend(left.filter_map(|mark| begin(graph, mark)).map(|op| scheduled.ops[op]));
    }
    begun
}

/// The node of an op, or of the op that it repeats.
pub(super) fn node(step: &StepIr, op: OpId) -> Option<NodeId> {
    let row = &step.ops[op];
    row.node.or_else(|| node(step, row.again?))
}

/// Whether a thread is not done, and its next mark does not wait for another thread.
fn is_ready(graph: &StepGraph, next: &TiVec<HostThreadId, MarkId>, thread: HostThreadId) -> bool {
    let at = next[thread];
    at < graph.threads[thread].end_mark && {
        let mark = &graph.marks[at];
        mark.wraps || next[graph.marks[mark.after].thread] > mark.after
    }
}

/// The op that begins at a mark.
fn begin(graph: &StepGraph, mark: MarkId) -> Option<steptime_graph::OpId> {
    if let MarkKind::OpBegin(op) = graph.marks[mark].kind { Some(op) } else { None }
}

/// Advances every thread to its next op, as far as it need not wait; returns whether any advanced.
fn pass_others(graph: &StepGraph, next: &mut TiVec<HostThreadId, MarkId>) -> bool {
    let mut moved = false;
    for thread in graph.threads.keys() {
        while is_ready(graph, next, thread) && begin(graph, next[thread]).is_none() {
            next[thread] = next[thread].next();
            moved = true;
        }
    }
    moved
}
