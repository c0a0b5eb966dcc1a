//! Children that rules derive for recorded calls, which must launch the same as the recorded children.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use steptime_aten::{Lowering, OpCall, OpDef, OpSet, from_execution};
use steptime_graph::execution::{ExecutionGraph, NodeKind, join};
use steptime_trace::{Recording, open};

/// Returns recordings of steps on the H200, of as many kinds of models as there are.
fn recordings() -> Vec<Recording> {
    let Some(traces) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces") else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["h200", "h200_b", "cpu_gpu_pairs/gpu"].map(|name| traces.join(name)) {
        let entries = std::fs::read_dir(&folder).into_iter().flatten();
        paths.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    }
    paths.sort();
    paths.iter().flat_map(|path| open(path).unwrap().recordings).collect()
}

/// Adds the ops that launch something in a call and in all ops that it calls.
fn derived(call: &OpCall, into: &mut Vec<String>) {
    for child in OpSet::standard().expand(call) {
        derived(&child, into);
    }
    if matches!(OpSet::standard().lower(call), Lowering::Kernel(_) | Lowering::Unknown(_)) {
        into.push(call.name.clone());
    }
}

#[test]
fn derived_children_launch_what_recorded_ones_did() {
    let mut wrong: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut compared = 0;
    let ops = OpSet::standard();
    for recording in recordings() {
        let (Some(et), Some(kineto)) = (&recording.execution, &recording.shaped) else { continue };
        let launched: HashSet<u64> = kineto.activities.external_id.iter().copied().collect();
        let graph = ExecutionGraph::new(et);
        let joined = join(et, kineto);
        let mut recorded: Vec<Vec<String>> = vec![Vec::new(); graph.nodes.len()];
        for node in graph.ids() {
            let Some(op) = joined.node_to_op[node] else { continue };
            if !launched.contains(&kineto.ops.external_id[op.index()]) {
                continue;
            }
            let mut at = Some(node);
            while let Some(up) = at {
                recorded[up.index()].push(graph.node_name(node).into());
                at = graph.tree.parent(up);
            }
        }
        for node in graph.ids().filter(|node| graph.nodes.kind[node.index()] == NodeKind::Operator) {
            let call = from_execution::op_call(&graph, node);
            // A sparse operand does not have the number of its rows, so the ops that add them cannot be derived.
            let sparse = call.input_tensors().any(|(_, _, tensor)| tensor.is_sparse());
            // An op without a rule is a leaf: it launches itself, and calls no op that does.
            let leaf = |op: &OpDef| op.expand.is_none() && ops.lower(&call) == Lowering::Children;
            if sparse || ops.find(&call.name).is_none_or(leaf) {
                continue;
            }
            let mut expected = std::mem::take(&mut recorded[node.index()]);
            let mut found = Vec::new();
            derived(&call, &mut found);
            expected.sort();
            found.sort();
            compared += 1;
            if expected != found {
                let entry = wrong.entry(call.name.clone()).or_default();
                entry.0 += 1;
                entry.1 = format!("{found:?} for {expected:?}: {:?}", call.inputs);
            }
        }
    }
    assert!(wrong.is_empty(), "of {compared} calls: {wrong:#?}");
}
