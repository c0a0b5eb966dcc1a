//! Finds the node of each op of a step graph, so that an op that was timed without its arguments has them.

use super::graph::ExecutionGraph;
use super::ids::NodeId;
use super::sequence::{Alignment, Item, align};
use crate::graph::StepGraph;
use crate::ids::{HostThreadId, OpId};
use crate::tables::MarkKind;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use typed_index_collections::{TiSlice, TiVec};

/// Which node each op of a step is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepJoin {
    /// For each op of the step graph, its node.
    pub op_to_node: TiVec<OpId, Option<NodeId>>,
    /// Ops that are no annotation and have no node.
    pub missing: usize,
}

/// Joins an execution trace with the template step of a timing trace of the same program, by the order of names
/// on each thread: the two were recorded in different steps, so that no id is shared.
#[must_use]
pub fn join_step(graph: &ExecutionGraph, step: &StepGraph) -> StepJoin {
    let nodes = nodes_by_thread(graph);
    let ops = ops_by_thread(step);
    let mut op_to_node: TiVec<OpId, Option<NodeId>> = vec![None; step.ops.len()].into();
    for (of_nodes, of_ops) in pair_threads(&nodes, &ops, graph, step) {
        let (nodes, ops) = (&nodes[of_nodes], &ops[of_ops]);
        let wanted: Vec<Item<&str>> = ops.iter().map(|&op| (step.op_name(op), None)).collect();
        let known: Vec<Item<&str>> = nodes.iter().map(|&node| (graph.node_name(node), None)).collect();
        let pairs = if wanted.len() <= known.len() {
            let Alignment { pairs, .. } = align(&wanted, &known);
            pairs
        } else {
            let Alignment { pairs, .. } = align(&known, &wanted);
            pairs.into_iter().map(|(node, op)| (op, node)).collect()
        };
        for (op, node) in pairs {
            op_to_node[ops[op]] = Some(nodes[node]);
        }
    }
    let rows = step.ops.iter().zip(&op_to_node);
    let missing = rows.filter(|(op, node)| !op.annotation && node.is_none()).count();
    StepJoin { op_to_node, missing }
}

fn nodes_by_thread(graph: &ExecutionGraph) -> Vec<Vec<NodeId>> {
    let mut threads: BTreeMap<u64, Vec<NodeId>> = BTreeMap::new();
    for node in graph.ids().filter(|node| graph.nodes.kind[node.index()].ran()) {
        threads.entry(graph.nodes.thread[node.index()]).or_default().push(node);
    }
    threads.into_values().collect()
}

/// Ops in the order in which they begin, thread by thread.
fn ops_by_thread(step: &StepGraph) -> TiVec<HostThreadId, Vec<OpId>> {
    let mut threads: TiVec<HostThreadId, Vec<OpId>> = vec![Vec::new(); step.threads.len()].into();
    for mark in &step.marks {
        if let MarkKind::OpBegin(op) = mark.kind {
            threads[mark.thread].push(op);
        }
    }
    threads
}

/// Pairs threads by how many names they share, most first; each thread at most once.
fn pair_threads(
    nodes: &[Vec<NodeId>],
    ops: &TiSlice<HostThreadId, Vec<OpId>>,
    graph: &ExecutionGraph,
    step: &StepGraph,
) -> Vec<(usize, HostThreadId)> {
    let mut shared = Vec::new();
    let of_nodes: Vec<_> =
        nodes.iter().map(|thread| counts(thread.iter().map(|&node| graph.node_name(node)))).collect();
    for (to, thread) in ops.iter_enumerated() {
        let of_ops = counts(thread.iter().map(|&op| step.op_name(op)));
        for (from, of_nodes) in of_nodes.iter().enumerate() {
            let both = of_nodes.iter().map(|(name, &n)| n.min(of_ops.get(name).copied().unwrap_or(0)));
            shared.push((Reverse(both.sum::<usize>()), from, to));
        }
    }
    shared.sort_unstable();
    let mut nodes_done = vec![false; nodes.len()];
    let mut ops_done: TiVec<HostThreadId, bool> = vec![false; ops.len()].into();
    shared.retain(|&(Reverse(count), from, to)| {
        let take = count > 0 && !nodes_done[from] && !ops_done[to];
        if take {
            (nodes_done[from], ops_done[to]) = (true, true);
        }
        take
    });
    shared.into_iter().map(|(_, from, to)| (from, to)).collect()
}

fn counts<'a>(names: impl Iterator<Item = &'a str>) -> FxHashMap<&'a str, usize> {
    let mut counts = FxHashMap::default();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}
