//! All ops of the recordings, if they are available: the three readers of a call agree, and ops that launched
//! something are lowered to work.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use steptime_aten::{Arg, Lowering, OpCall, OpSet, from_execution, from_kineto};
use steptime_graph::execution::{ExecutionGraph, NodeId, NodeKind, join};
use steptime_trace::{Recording, open};

fn recordings() -> Vec<Recording> {
    let Some(folder) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces/h200") else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| open(path).unwrap().recordings).collect()
}

/// Returns the parts that both recorders write: no results, no devices and offsets, no lists of tensors, no texts.
fn common(call: &OpCall) -> OpCall {
    let strip = |arg: &Arg| match arg {
        Arg::Tensor(tensor) => {
            let mut tensor = tensor.clone();
            (tensor.offset, tensor.device) = (0, steptime_aten::Device::Unknown);
            Arg::Tensor(tensor)
        }
        Arg::Tensors(_) | Arg::Text(_) => Arg::None,
        Arg::Ints(list) if list.is_empty() => Arg::None,
        other => other.clone(),
    };
    OpCall { inputs: call.inputs.iter().map(strip).collect(), outputs: Vec::new(), ..call.clone() }
}

#[test]
fn calls_of_both_recorders_agree() {
    for recording in recordings() {
        let (Some(et), Some(kineto)) = (&recording.execution, &recording.shaped) else { continue };
        let graph = ExecutionGraph::new(et);
        let joined = join(et, kineto);
        let calls = from_kineto::Calls::new(kineto);
        let mut compared = 0;
        for node in graph.ids().filter(|node| graph.nodes.kind[node.index()] == NodeKind::Operator) {
            let Some(op) = joined.node_to_op[node] else { continue };
            let Some(found) = calls.call(op) else { continue };
            let expected = from_execution::op_call(&graph, node);
            // Kineto does not record that a tensor is copied onto itself.
            if expected.name == "aten::copy_" && expected.inputs.get(1) == Some(&Arg::None) {
                continue;
            }
            assert_eq!(common(&found), common(&expected), "{} in {}", expected.name, recording.name);
            compared += 1;
        }
        assert!(compared > 100, "{}: {compared}", recording.name);
    }
}

/// Ops that are lowered to work but launched nothing, with the reason.
const SILENT: &[(&str, &str)] = &[];

#[test]
fn what_launched_is_lowered_to_work_and_nothing_else() {
    let mut missed: BTreeMap<String, usize> = BTreeMap::new();
    let mut silent: BTreeMap<String, usize> = BTreeMap::new();
    for recording in recordings() {
        let (Some(et), Some(kineto)) = (&recording.execution, &recording.shaped) else { continue };
        let mut launched: HashMap<u64, u32> = HashMap::new();
        for &id in &kineto.activities.external_id {
            *launched.entry(id).or_default() += 1;
        }
        let graph = ExecutionGraph::new(et);
        let joined = join(et, kineto);
        for node in graph.ids().filter(|node| graph.nodes.kind[node.index()] == NodeKind::Operator) {
            let Some(op) = joined.node_to_op[node] else { continue };
            let launches = launched.get(&kineto.ops.external_id[op.index()]).copied().unwrap_or(0);
            let call = from_execution::op_call(&graph, node);
            let lowered = OpSet::standard().lower(&call);
            match (&lowered, launches) {
                (Lowering::Kernel(_), 0) if !SILENT.iter().any(|&(name, _)| name == call.name) => {
                    *silent.entry(call.name.clone()).or_default() += 1;
                }
                (Lowering::Kernel(_), _) | (Lowering::Nothing | Lowering::Children, 0) => {}
                _ => *missed.entry(format!("{} {}", call.name, kind(&lowered))).or_default() += 1,
            }
        }
    }
    assert!(missed.is_empty() && silent.is_empty(), "not work: {missed:#?}\nlaunched nothing: {silent:#?}");
}

/// Returns the operators of a recording with the calls they made, by node.
fn calls(graph: &ExecutionGraph) -> impl Iterator<Item = (NodeId, OpCall)> + '_ {
    let operators = graph.ids().filter(|node| graph.nodes.kind[node.index()] == NodeKind::Operator);
    operators.map(|node| (node, from_execution::op_call(graph, node)))
}

/// Adds the ops below a node that launch something themselves, in the order in which they began.
fn launching(graph: &ExecutionGraph, node: NodeId, found: &mut Vec<String>) {
    for child in graph.tree.children(node) {
        let call = from_execution::op_call(graph, *child);
        launching(graph, *child, found);
        if graph.nodes.kind[child.index()] == NodeKind::Operator
            && OpSet::standard().lower(&call).kernel().is_some()
        {
            found.push(call.name);
        }
    }
}

#[test]
fn ops_call_what_the_rules_say() {
    let mut wrong: BTreeMap<String, usize> = BTreeMap::new();
    let mut right = 0;
    for recording in recordings() {
        let Some(et) = &recording.execution else { continue };
        let graph = ExecutionGraph::new(et);
        for (node, call) in calls(&graph) {
            let children = OpSet::standard().expand(&call);
            if children.is_empty() || OpSet::standard().lower(&call) == Lowering::Nothing {
                continue;
            }
            let expected: Vec<String> = children
                .iter()
                .flat_map(|call| OpSet::standard().leaves(call))
                .map(|leaf| leaf.op.name)
                .collect();
            let mut found = Vec::new();
            launching(&graph, node, &mut found);
            if expected == found {
                right += 1;
            } else {
                *wrong.entry(format!("{}: {expected:?}, recorded {found:?}", call.name)).or_default() += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{right} right, wrong: {wrong:#?}");
}

#[test]
fn gradients_call_what_the_rules_say() {
    let mut wrong: BTreeMap<String, usize> = BTreeMap::new();
    let mut right = 0;
    for recording in recordings() {
        let Some(et) = &recording.execution else { continue };
        let graph = ExecutionGraph::new(et);
        for node in graph.ids().filter(|&node| graph.nodes.kind[node.index()] == NodeKind::Backward) {
            let Some(forward) = graph.pairing.forward(node) else { continue };
            let call = from_execution::op_call(&graph, forward);
            let all: Vec<_> = OpSet::standard()
                .backward(&call)
                .iter()
                .flat_map(|call| OpSet::standard().leaves(call))
                .collect();
            // Sums over broadcast dimensions belong to the engine and are outside of the function.
            let expected: Vec<String> =
                all.into_iter().map(|leaf| leaf.op.name).filter(|name| name != "aten::sum").collect();
            let mut found = Vec::new();
            launching(&graph, node, &mut found);
            // Ops that do not depend on the gradient of the result alone: copies of gradients that are not contiguous.
            found.retain(|name| name != "aten::copy_");
            // An input without gradient gets none.
            let mut rest = expected.iter();
            if !found.is_empty() && found.iter().all(|name| rest.any(|other| other == name))
                || expected == found
            {
                right += 1;
            } else {
                *wrong.entry(format!("{}: {expected:?}, recorded {found:?}", call.name)).or_default() += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{right} right, wrong: {wrong:#?}");
}

#[test]
fn shape_rules_give_what_was_recorded() {
    let mut wrong: BTreeMap<String, usize> = BTreeMap::new();
    let mut right = 0;
    for recording in recordings() {
        let Some(et) = &recording.execution else { continue };
        let graph = ExecutionGraph::new(et);
        for (_, call) in calls(&graph) {
            let Some(given) = OpSet::standard().outputs(&OpCall { outputs: Vec::new(), ..call.clone() })
            else {
                continue;
            };
            for (ret, (computed, recorded)) in given.iter().zip(&call.outputs).enumerate() {
                let (Arg::Tensor(computed), Arg::Tensor(recorded)) = (computed, recorded) else { continue };
                let same = computed.shape == recorded.shape && computed.dtype == recorded.dtype;
                if same && (computed.strides == recorded.strides || recorded.numel() <= 1) {
                    right += 1;
                } else {
                    let text = format!("{} {ret}: {computed:?}, recorded {recorded:?}", call.name);
                    *wrong.entry(text).or_default() += 1;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{right} right, wrong: {wrong:#?}");
}

fn kind(lowered: &Lowering) -> &'static str {
    match lowered {
        Lowering::Kernel(_) => "kernel",
        Lowering::Nothing => "nothing",
        Lowering::Children => "children",
        Lowering::Unknown(_) => "unknown",
    }
}
