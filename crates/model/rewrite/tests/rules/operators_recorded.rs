//! Steps by PyTorch's ops after the change, compared with recordings of the same models with the operators.
//!
//! `tests/data` has execution traces of both sides: `python -m steptime record` of `python/workloads/zoo_step.py` with
//! `STEPTIME_VARIANT=ours` (and `fbgemm`) and without, and of `deepfm.py` with `STEPTIME_OPERATORS=steptime` (and `fbgemm`) and
//! without. FBGEMM 1.6.0.

use std::collections::BTreeMap;
use std::path::Path;

use steptime_aten::derive::{self, OpTree, TreeKind};
use steptime_aten::{Arg, Lowering, OpSet};
use steptime_graph::execution::ExecutionGraph;
use steptime_rewrite::{Facts, Fbgemm, Operators, Rule, apply};
use steptime_step::StepIr;

/// The step of an execution trace in `tests/data/`, without times.
fn open(name: &str) -> StepIr {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).with_extension("json.gz");
    let opened = steptime_trace::open(&file).expect("a trace");
    let execution = opened.recordings[0].execution.as_ref().expect("an execution trace");
    let execution = ExecutionGraph::new(execution);
    let tree = OpTree::from_execution(&execution);
    let derived = derive::from_tree(&tree, &OpSet::standard()).expect("ops");
    let of_op = |op: steptime_graph::OpId| &tree.nodes[derived.nodes[op] as usize];
    let call = |op| Some(of_op(op)).filter(|node| node.kind == TreeKind::Op).map(|node| node.call.clone());
    StepIr::from_graph(&derived.graph, Some(&execution), call, |op| of_op(op).origin)
}

/// Number of running ops by name.
fn counts(step: &StepIr) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for op in step.running() {
        *counts.entry(&*step.ops[op].name).or_default() += 1;
    }
    counts
}

/// Number of ops by name, sizes of inputs and launches.
fn launches(step: &StepIr, ops: &OpSet) -> BTreeMap<String, usize> {
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
fn other<K: AsRef<str> + Ord>(here: &BTreeMap<K, usize>, there: &BTreeMap<K, usize>) -> Vec<String> {
    let mut keys: Vec<&K> = here.keys().chain(there.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| here.get(key) != there.get(key));
    let line = |key: &K| format!("{}: {:?} for {:?}", key.as_ref(), here.get(key), there.get(key));
    keys.into_iter().map(line).collect()
}

/// The derived step has the recorded ops, with the same launches.
fn is_as_recorded(name: &str, rule: &dyn Rule, whose: &str) {
    let ops = OpSet::standard();
    let mut step = open(name);
    let audits = apply(&mut step, &[rule], &Facts::new(&ops, None)).expect("it applies");
    let recorded = open(&format!("{name}_{whose}"));
    assert_eq!(other(&counts(&step), &counts(&recorded)), [""; 0], "{audits:?}");
    assert_eq!(other(&launches(&step, &ops), &launches(&recorded, &ops)), [""; 0]);
}

#[test]
fn columns_of_one_tensor_that_two_groups_share_and_adam_over_lists() {
    is_as_recorded("wide_deep", &Operators, "ours");
}

#[test]
fn results_in_a_stack_and_an_optimizer_that_goes() {
    is_as_recorded("deepfm", &Operators, "ours");
}

#[test]
fn means_of_bags_whose_offsets_are_copied_and_single_rows() {
    is_as_recorded("two_towers", &Operators, "ours");
}

#[test]
fn tables_by_fbgemm_but_those_of_one_column() {
    is_as_recorded("deepfm", &Fbgemm, "fbgemm");
}

#[test]
fn adam_and_means_by_fbgemm() {
    is_as_recorded("two_towers", &Fbgemm, "fbgemm");
}
