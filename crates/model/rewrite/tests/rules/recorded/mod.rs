//! Steps recorded on a CPU, converted to a GPU.

use std::collections::BTreeMap;
use std::path::Path;

use steptime_aten::derive::{self, TreeKind};
use steptime_aten::{Arg, Lowering, OpSet, retarget};
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::{Modules, StepGraph};
use steptime_rewrite::{Error, Facts, Rule, apply};
use steptime_step::StepIr;
use steptime_trace::Meta;

/// A step, with further facts about it.
pub struct RecordedStep {
    pub step: StepIr,
    pub ops: OpSet,
    pub graph: StepGraph,
    pub execution: ExecutionGraph,
    pub meta: Meta,
    modules: Modules,
}

impl RecordedStep {
    /// The step of a folder in `tests/data/`.
    pub fn open(name: &str) -> RecordedStep {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        let mut opened = steptime_trace::open(&folder).expect("a recording");
        let recording = opened.recordings.remove(0);
        let meta = recording.meta.expect("a meta.json");
        let execution = ExecutionGraph::new(recording.execution.as_ref().expect("an execution trace"));
        let ops = OpSet::standard();
        let tree = retarget::to_cuda(&execution, &ops, &meta).tree;
        let derived = derive::from_tree(&tree, &ops).expect("ops");
        let of_op = |op: steptime_graph::OpId| &tree.nodes[derived.nodes[op] as usize];
        let call =
            |op| Some(of_op(op)).filter(|node| node.kind == TreeKind::Op).map(|node| node.call.clone());
        let step = StepIr::from_graph(&derived.graph, Some(&execution), call, |op| of_op(op).origin);
        let sequence = |op| Some(execution.nodes.noted[of_op(op).origin?.index()].sequence);
        let modules = Modules::build(&derived.graph, sequence, &meta.modules);
        RecordedStep { step, ops, graph: derived.graph, execution, meta, modules }
    }

    /// The step after rules.
    pub fn after(&self, rules: &[&dyn Rule]) -> Result<StepIr, Error> {
        let mut step = self.step.clone();
        let facts = Facts { modules: Some(&self.modules), ..Facts::new(&self.ops, self.meta.batch) };
        apply(&mut step, rules, &facts).map_err(|refused| refused.source)?;
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

/// Number of ops by name, sizes of inputs and launches.
pub fn launches(step: &StepIr, ops: &OpSet) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for op in step.running() {
        let Some(call) = step.call(op) else { continue };
        if let Lowering::Kernel(kernel) = ops.lower(call) {
            let sizes: u64 = call.inputs.iter().flat_map(Arg::tensors).map(|tensor| tensor.numel()).sum();
            *found.entry(format!("{} of {sizes}, {} launches", call.name, kernel.launches)).or_default() += 1;
        }
    }
    found
}

/// Counts that differ between two maps.
pub fn other(here: &BTreeMap<String, usize>, there: &BTreeMap<String, usize>) -> Vec<String> {
    let mut keys: Vec<&String> = here.keys().chain(there.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| here.get(*key) != there.get(*key));
    keys.into_iter().map(|key| format!("{key}: {:?} for {:?}", here.get(key), there.get(key))).collect()
}
