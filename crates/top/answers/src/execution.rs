//! Summary of an execution trace.

use std::collections::BTreeMap;

use serde::Serialize;
use steptime_graph::StepGraph;
use steptime_graph::execution::{ExecutionGraph, join, join_step};
use steptime_trace::{ExecutionTrace, LinkedActivity, Nanos, Trace};

/// Counts of an execution trace, and its join with the Kineto trace of the same step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExecutionReport {
    /// The version of its format.
    pub schema: String,
    /// All nodes.
    pub nodes: usize,
    /// Nodes that are operators.
    pub operators: usize,
    /// Operators that are not called by another operator.
    pub top_level: usize,
    /// Tensors, distinguished by id.
    pub tensors: usize,
    /// Storages of the tensors.
    pub storages: usize,
    /// Pairs of operators of which one reads a result of the other.
    pub dependencies: usize,
    /// Backward functions with their forward op.
    pub paired: usize,
    /// Backward functions without one.
    pub unpaired: usize,
    /// Repairs made while building the graph.
    pub repairs: usize,
    /// Device activities that a linker wrote among the nodes; not included in the counts above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linked: Option<LinkerActivities>,
    /// Top-level operators by name, most frequent first.
    pub ops: Vec<OpCount>,
    /// Join with a Kineto trace, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<KinetoJoin>,
    /// Ops of the timed step that are absent here or match several nodes, by name, most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<OpCount>,
}

/// Kernels, copies and fills that a linker wrote into an execution trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkerActivities {
    /// Number of activities.
    pub activities: usize,
    /// Number of activities with a time.
    pub timed: usize,
    /// Their total time, milliseconds.
    pub device_ms: f64,
}

impl LinkerActivities {
    fn from_activities(linked: &[LinkedActivity]) -> Option<LinkerActivities> {
        let times = || linked.iter().filter_map(|activity| activity.dur);
        let device_ms = times().sum::<Nanos>().as_millis();
        (!linked.is_empty()).then(|| LinkerActivities {
            activities: linked.len(),
            timed: times().count(),
            device_ms,
        })
    }
}

/// Ops of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpCount {
    /// Their name.
    pub name: String,
    /// Number of ops.
    pub count: usize,
}

/// The join with the Kineto trace of the same step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KinetoJoin {
    /// Nodes that can have a counterpart.
    pub joinable: usize,
    /// Nodes found by the id that both traces recorded.
    pub by_rf_id: usize,
    /// Nodes found by their order on their thread.
    pub by_order: usize,
    /// Share of joinable nodes that were found.
    pub share: f64,
    /// Names of the first few nodes that were not found.
    pub unmatched: Vec<String>,
}

impl ExecutionReport {
    /// Counts an execution trace and, where there are any, the Kineto trace of the same step and a timed step.
    ///
    /// # Errors
    /// Fails where its ops are nested too deep.
    pub fn new(
        trace: &ExecutionTrace,
        kineto: Option<&Trace>,
        step: Option<&StepGraph>,
    ) -> Result<ExecutionReport, steptime_graph::Error> {
        let graph = ExecutionGraph::read(trace)?;
        let summary = graph.summary();
        let join = kineto.map(|kineto| {
            let join = join(trace, kineto);
            KinetoJoin {
                joinable: join.joinable,
                by_rf_id: join.by_rf_id,
                by_order: join.by_order,
                share: join.coverage(),
                unmatched: join.unmatched.iter().map(|&node| graph.node_name(node).to_owned()).collect(),
            }
        });
        Ok(ExecutionReport {
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
            linked: LinkerActivities::from_activities(&trace.linked),
            ops: counted(graph.top_level().map(|node| graph.node_name(node))),
            join,
            lacking: step.map(|step| lacking(&graph, step)).unwrap_or_default(),
        })
    }
}

fn lacking(graph: &ExecutionGraph, step: &StepGraph) -> Vec<OpCount> {
    let joined = join_step(graph, step);
    let ops = joined.op_to_node.iter_enumerated().filter(|(_, node)| node.is_none()).map(|(op, _)| op);
    counted(ops.filter(|&op| !step.ops[op].annotation).map(|op| step.op_name(op)))
}

fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<OpCount> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let mut ops: Vec<OpCount> =
        counts.into_iter().map(|(name, count)| OpCount { name: name.to_owned(), count }).collect();
    ops.sort_by(|a, b| (b.count, &a.name).cmp(&(a.count, &b.name)));
    ops
}
