//! Steps of the repository's own recordings.

use std::collections::BTreeMap;
use std::path::Path;

use steptime_aten::{Arg, OpSet, from_execution};
use steptime_graph::execution::{ExecutionGraph, join_step};
use steptime_graph::{Options, StepGraph};
use steptime_rewrite::{Error, Facts, Rule, apply};
use steptime_step::{OpId, StepIr};

/// A recording's step, with its graph.
pub struct Example {
    pub graph: StepGraph,
    pub step: StepIr,
    pub ops: OpSet,
}

/// The step of a folder in `examples/`.
pub fn open(name: &str) -> Example {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name);
    let opened = steptime_trace::open(&folder).expect("a recording");
    let recording = &opened.recordings[0];
    let timing = recording.timing.as_ref().expect("a timing trace");
    let graph = StepGraph::build(timing, &Options::default()).expect("a graph");
    let execution = ExecutionGraph::new(recording.execution.as_ref().expect("an execution trace"));
    let joined = join_step(&execution, &graph);
    let node = |op: steptime_graph::OpId| joined.op_to_node[op];
    let call = |op: steptime_graph::OpId| node(op).map(|node| from_execution::op_call(&execution, node));
    let step = StepIr::from_graph(&graph, Some(&execution), call, node);
    Example { graph, step, ops: OpSet::standard() }
}

impl Example {
    /// The step after a rule.
    pub fn after(&self, rule: &dyn Rule) -> Result<StepIr, Error> {
        let mut step = self.step.clone();
        apply(&mut step, &[rule], &Facts::new(&self.ops, None)).map_err(|refused| refused.source)?;
        Ok(step)
    }
}

/// Number of running ops by name.
pub fn counts(step: &StepIr) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for op in step.running() {
        *counts.entry(&*step.ops[op].name).or_default() += 1;
    }
    counts
}

/// The ops of a name.
pub fn named(step: &StepIr, name: &str) -> Vec<OpId> {
    step.running().into_iter().filter(|&op| step.ops[op].name == name).collect()
}

/// Shapes of the inputs of an op.
pub fn takes(step: &StepIr, op: OpId) -> Vec<Vec<i64>> {
    let call = step.call(op).expect("a call");
    call.inputs.iter().flat_map(Arg::tensors).map(|tensor| tensor.shape.to_vec()).collect()
}
