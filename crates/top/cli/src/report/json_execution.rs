//! An execution trace in numbers, on the wire.

use serde::Serialize;
use steptime::graph::execution::{ExecutionGraph, join};
use steptime::trace::{ExecutionTrace, Trace};

/// Counts of what is in an execution trace, and how it joins the Kineto trace of the same step.
#[derive(Debug, Serialize)]
pub struct ExecutionJson {
    pub schema: String,
    pub nodes: usize,
    pub operators: usize,
    pub top_level: usize,
    pub tensors: usize,
    pub storages: usize,
    pub dependencies: usize,
    pub paired: usize,
    pub unpaired: usize,
    pub repairs: usize,
    pub ops: Vec<OpCount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinJson>,
}

/// Top-level operators of one name.
#[derive(Debug, Serialize)]
pub struct OpCount {
    /// Their name.
    pub name: String,
    /// How many there are.
    pub count: usize,
}

/// The join with the Kineto trace of the same step.
#[derive(Debug, Serialize)]
pub struct JoinJson {
    /// Nodes that can have a counterpart.
    pub joinable: usize,
    /// Found by the id that both traces recorded.
    pub by_rf_id: usize,
    /// Found by their place on their thread.
    pub by_order: usize,
    /// Share found.
    pub share: f64,
    /// The names of the first few that were not.
    pub unmatched: Vec<String>,
}

impl ExecutionJson {
    /// Of an execution trace and, where there is one, the Kineto trace of the same step.
    pub fn new(trace: &ExecutionTrace, kineto: Option<&Trace>) -> ExecutionJson {
        let graph = ExecutionGraph::new(trace);
        let summary = graph.summary();
        let join = kineto.map(|kineto| {
            let join = join(trace, kineto);
            JoinJson {
                joinable: join.joinable,
                by_rf_id: join.by_rf_id,
                by_order: join.by_order,
                share: join.coverage(),
                unmatched: join.unmatched.iter().map(|&node| graph.node_name(node).to_owned()).collect(),
            }
        });
        ExecutionJson {
            schema: trace.schema.to_string(),
            nodes: summary.nodes,
            operators: summary.operators,
            top_level: summary.top_level,
            tensors: summary.tensors,
            storages: summary.storages,
            dependencies: summary.dependencies,
            paired: summary.paired,
            unpaired: summary.unpaired,
            repairs: summary.repairs,
            ops: ops(&graph),
            join,
        }
    }
}

fn ops(graph: &ExecutionGraph) -> Vec<OpCount> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for node in graph.top_level() {
        *counts.entry(graph.node_name(node)).or_default() += 1;
    }
    let mut ops: Vec<OpCount> =
        counts.into_iter().map(|(name, count)| OpCount { name: name.to_owned(), count }).collect();
    ops.sort_by(|a, b| (b.count, &a.name).cmp(&(a.count, &b.name)));
    ops
}
