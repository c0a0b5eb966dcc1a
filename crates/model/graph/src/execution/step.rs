//! Joins the ops of a timed step with nodes of an execution trace, so that ops timed without arguments get them.

use super::alignment::{Alignment, Item, align};
use super::graph::ExecutionGraph;
use super::ids::NodeId;
use crate::graph::StepGraph;
use crate::ids::{HostThreadId, OpId};
use crate::tables::MarkKind;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use typed_index_collections::{TiSlice, TiVec};

/// Node of each op of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepJoin {
    /// Node of each op of the step graph.
    pub op_to_node: TiVec<OpId, Option<NodeId>>,
    /// Number of ops, annotations excluded, that have no node.
    pub missing: usize,
}

/// Joins an execution trace with the template step of a timing trace of the same program, by the order of names
/// on each thread: the two were recorded in different steps, so they share no ids.
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

/// Returns the ops of each thread in the order in which they begin.
fn ops_by_thread(step: &StepGraph) -> TiVec<HostThreadId, Vec<OpId>> {
    let mut threads: TiVec<HostThreadId, Vec<OpId>> = vec![Vec::new(); step.threads.len()].into();
    for mark in &step.marks {
        if let MarkKind::OpBegin(op) = mark.kind {
            threads[mark.thread].push(op);
        }
    }
    threads
}

/// Pairs threads by the number of names they share, most first; each thread at most once.
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

#[cfg(test)]
mod tests {
    use super::super::fixture::{Node, graph};
    use super::*;
    use crate::Options;
    use std::fmt::Write;
    use steptime_trace::read_kineto;

    /// Blocks of a backward pass with recomputed forward pass, each ending with nested ops; `(depth, name)`.
    const BLOCK: [(u32, &str); 12] = [
        (0, "autograd::engine::evaluate_function: CheckpointBackward"),
        (1, "aten::slice"),
        (1, "aten::mul"),
        (1, "aten::linear"),
        (2, "aten::t"),
        (2, "aten::matmul"),
        (3, "aten::view"),
        (3, "aten::mm"),
        (1, "detach"),
        (1, "aten::slice_backward"),
        (2, "aten::zeros"),
        (2, "aten::copy_"),
    ];
    const BLOCKS: usize = 6;

    /// Returns a timed step of ops, each as long as the ops inside it.
    fn step(ops: &[(u32, &str)]) -> StepGraph {
        let mut events =
            r#"{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":9999}"#
                .to_owned();
        for (at, (depth, name)) in ops.iter().enumerate() {
            let inside = ops[at + 1..].iter().take_while(|(inner, _)| inner > depth).count();
            let (start, length) = (10 * at + 1, 10 * inside + 9 - *depth as usize);
            write!(
                events,
                r#",{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":{start},"dur":{length}}}"#
            )
            .unwrap();
        }
        let trace = read_kineto(format!(r#"{{"schemaVersion":1,"traceEvents":[{events}]}}"#).as_bytes());
        StepGraph::build(&trace.unwrap(), &Options::default()).unwrap()
    }

    fn execution(ops: &[(u32, &str)]) -> ExecutionGraph {
        let node = |(at, (_, name)): (usize, &(u32, &str))| Node::op(3 + at as u64, 2, "").named(name);
        graph(&ops.iter().enumerate().map(node).collect::<Vec<_>>())
    }

    /// Joins a step of equal blocks with an execution trace of blocks changed by `change`, and returns the names of
    /// the step's ops that have no node. All others must have the node at their place.
    fn lacking(change: impl Fn(usize, &mut Vec<(u32, &'static str)>)) -> Vec<String> {
        let timed = step(&BLOCK.repeat(BLOCKS));
        let mut ops = Vec::new();
        for block in 0..BLOCKS {
            let mut changed = BLOCK.to_vec();
            change(block, &mut changed);
            ops.extend(changed);
        }
        let execution = execution(&ops);
        let joined = join_step(&execution, &timed);
        let mut lacking = Vec::new();
        // Block of the step, and block of the node.
        let mut blocks = (0, 0);
        for (op, node) in joined.op_to_node.iter_enumerated().filter(|(op, _)| !timed.ops[*op].annotation) {
            let name = timed.op_name(op);
            blocks.0 += usize::from(name == BLOCK[1].1);
            let Some(node) = *node else {
                lacking.push(name.to_owned());
                continue;
            };
            assert_eq!(name, execution.node_name(node));
            blocks.1 = ops[..=node.index() - 2].iter().filter(|op| op.1 == BLOCK[1].1).count();
            assert_eq!(blocks.0, blocks.1, "{name}");
        }
        assert_eq!(joined.missing, lacking.len());
        lacking
    }

    #[test]
    fn equal_sequences_join_whole() {
        assert_eq!(lacking(|_, _| ()), [""; 0]);
    }

    #[test]
    fn an_op_missing_in_the_middle_costs_only_itself() {
        let missing = lacking(|block, ops| {
            if block == 3 {
                ops.remove(2);
            }
        });
        assert_eq!(missing, ["aten::mul"]);
    }

    #[test]
    fn ops_missing_around_and_within_a_nest_cost_only_themselves() {
        let cut = ["aten::linear", "aten::matmul", "aten::mm"];
        let missing = lacking(|block, ops| ops.retain(|(_, name)| block % 2 == 0 || !cut.contains(name)));
        assert_eq!(missing, cut.repeat(BLOCKS / 2));
        let missing = lacking(|block, ops| ops.retain(|(_, name)| block != 2 || *name != "aten::view"));
        assert_eq!(missing, ["aten::view"]);
    }

    #[test]
    fn an_extra_node_costs_nothing() {
        let extra = lacking(|block, ops| {
            if block == 1 {
                ops.insert(6, (3, "aten::expand"));
            }
        });
        assert_eq!(extra, [""; 0]);
    }

    #[test]
    fn of_equal_ops_in_a_row_none_is_guessed() {
        let more = lacking(|block, ops| {
            if block == 4 {
                ops.insert(2, ops[2]);
            }
        });
        assert_eq!(more, ["aten::mul"]);
    }
}
