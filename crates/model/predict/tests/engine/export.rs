//! Round trips: a step read again equals the written step.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steptime_aten::{OpCall, from_execution};
use steptime_graph::execution::{Arg, ExecutionGraph, NodeId, TensorId};
use steptime_predict::{Choice, Step, WhatIf};
use steptime_rewrite::{FuseEmbeddingBags, ResizeBatch, Rule};
use steptime_step::export::{dot, execution, json};
use steptime_step::{OpId, StepIr as ModifiedStep};
use steptime_trace::{Options, open};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name)
}

fn read(path: &Path) -> Step {
    Step::open_with(path, &Choice::default(), &Options::default()).expect("a step")
}

fn changed(step: &Step, rules: &[&dyn Rule]) -> WhatIf {
    step.predict().on("h200").expect("a profile").what_if(rules).expect("a change")
}

/// Writes an execution trace of a step; returns its path.
fn written(name: &str, answer: &WhatIf, step: &Step) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("export_{name}.et.json"));
    let mut out = Vec::new();
    execution::write(&mut out, &answer.export(step)).expect("room");
    fs::write(&path, out).expect("a file");
    path
}

fn graph(path: &Path) -> ExecutionGraph {
    let trace = open(path).expect("a trace").recordings.remove(0).execution.expect("an execution trace");
    assert_eq!(trace.notes.repairs(), 0, "{}", path.display());
    ExecutionGraph::new(&trace)
}

/// Describes everything known of a tensor.
fn tensor(graph: &ExecutionGraph, id: TensorId) -> String {
    let row = graph.tensors.get(id);
    let storage = graph.tensors.storage(row.storage);
    let (shape, strides) = (graph.tensors.shape(id), graph.tensors.strides(id));
    let [dtype, device] = [row.dtype, row.device].map(|name| graph.name(name));
    let numbers = [row.raw_id, storage.address, row.offset, row.numel, u64::from(row.itemsize)];
    format!("{numbers:?} {shape:?} {strides:?} {dtype} {device} {:?} {:?}", id, row.storage)
}

fn argument(graph: &ExecutionGraph, arg: Arg) -> String {
    match arg {
        Arg::Tensor(id) => tensor(graph, id),
        Arg::TensorList(range) => {
            let all = graph.args.tensor_list(range).iter();
            format!("{:?}", all.map(|&id| tensor(graph, id)).collect::<Vec<_>>())
        }
        Arg::List(range) => {
            let all = graph.args.get(range).iter();
            format!("{:?}", all.map(|&arg| argument(graph, arg)).collect::<Vec<_>>())
        }
        Arg::Str(name) | Arg::Device(name) => graph.name(name).to_owned(),
        plain => format!("{plain:?}"),
    }
}

fn node(graph: &ExecutionGraph, node: NodeId) -> String {
    let (at, nodes) = (node.index(), &graph.nodes);
    let args = |range| graph.args.get(range).iter().map(|&arg| argument(graph, arg)).collect::<Vec<_>>();
    let parent = graph.tree.parent(node).map(|parent| nodes.id[parent.index()]);
    let noted = &nodes.noted[at];
    let numbers = [noted.record_function, noted.forward_parent, noted.forward_thread, nodes.thread[at]];
    format!(
        "{} {} {:?} {parent:?} {} {numbers:?} {} {} {:?} -> {:?}",
        nodes.id[at],
        graph.node_name(node),
        nodes.kind[at],
        graph.name(nodes.schema[at]),
        noted.sequence,
        noted.scope,
        args(graph.inputs(node)),
        args(graph.outputs(node))
    )
}

fn check_round_trip(name: &str, recording: &Path) {
    let step = read(recording);
    let path = written(name, &changed(&step, &[]), &step);
    let (was, is) = (graph(&recording.join("et.json.gz")), graph(&path));
    let [was, is] = [was, is].map(|graph| graph.ids().map(|id| node(&graph, id)).collect::<Vec<_>>());
    for (was, is) in was.iter().zip(&is) {
        assert_eq!(was, is, "{name}");
    }
    assert_eq!(was.len(), is.len(), "{name}");

    let [was, is] = [recording.join("et.json.gz"), path].map(|path| {
        let step = read(&path);
        let found = step.predict().on("h200").expect("a profile").run().expect("a prediction");
        (found.step, found.active, found.interval, found.peak.map(|peak| peak.total()))
    });
    assert_eq!(was, is, "{name}");
}

#[test]
fn a_recorded_step_is_written_as_it_was_recorded() {
    for name in ["dlrm_default_2048", "resnet50_32"] {
        check_round_trip(name, &example(name));
    }
}

#[test]
fn so_are_others() {
    let Some(traces) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces") else { return };
    for name in ["h200/dlrm_mlperf_fused_2048", "h200_b/encdec_base_32"] {
        check_round_trip(&name.replace('/', "_"), &traces.join(name));
    }
}

/// Describes an op's input and output tensors.
fn shapes(call: &OpCall) -> String {
    let all = call.inputs.iter().chain(&call.outputs).flat_map(|arg| arg.tensors().to_vec());
    let all: Vec<_> = all.map(|tensor| (tensor.shape, tensor.dtype, tensor.device)).collect();
    format!("{} {all:?}", call.name)
}

/// Ops of each thread, in order.
fn ops_of(step: &ModifiedStep) -> BTreeSet<Vec<String>> {
    let one = |op: OpId| {
        let named = OpCall::new(&step.ops[op].name, Vec::new());
        shapes(step.call(op).unwrap_or(&named))
    };
    let threads = step.threads.iter();
    threads.map(|roots| roots.iter().flat_map(|&root| step.subtree(root)).map(one).collect()).collect()
}

/// Ops of each thread, in order, read from a file.
fn read_again(path: &Path) -> BTreeSet<Vec<String>> {
    let graph = graph(path);
    let mut threads: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for node in graph.ids().filter(|node| graph.nodes.kind[node.index()].ran()) {
        let call = shapes(&from_execution::op_call(&graph, node));
        threads.entry(graph.nodes.thread[node.index()]).or_default().push(call);
    }
    threads.into_values().collect()
}

#[test]
fn a_changed_step_has_the_shapes_of_the_change() {
    let step = read(&example("dlrm_default_2048"));
    let rules: [(&str, &[&dyn Rule]); 2] =
        [("batch", &[&ResizeBatch::to(8192)]), ("fused", &[&FuseEmbeddingBags])];
    for (name, rules) in rules {
        let answer = changed(&step, rules);
        let path = written(name, &answer, &step);
        for (was, is) in ops_of(&answer.step).iter().zip(&read_again(&path)) {
            assert_eq!(was.len(), is.len(), "{name}");
            was.iter().zip(is).for_each(|(was, is)| assert_eq!(was, is, "{name}"));
        }
        let again = read(&path);
        let found = again.predict().on("h200").expect("a profile").run().expect("a prediction");
        let off = found.active.as_micros() / answer.after.active.as_micros() - 1.0;
        assert!(off.abs() < 0.002, "{name}: {} and {}", found.active, answer.after.active);
    }
}

#[test]
fn every_id_of_the_json_is_there() {
    let step = read(&example("dlrm_default_2048"));
    let answer = changed(&step, &[&FuseEmbeddingBags]);
    let mut out = Vec::new();
    json::write(&mut out, &answer.export(&step)).expect("room");
    let file: Value = serde_json::from_slice(&out).expect("JSON");
    let ids = |of: &str| -> BTreeSet<u64> {
        file[of].as_array().expect("a list").iter().map(|row| row["id"].as_u64().expect("an id")).collect()
    };
    let (ops, tensors) = (ids("ops"), ids("tensors"));
    assert_eq!(ops.len(), answer.step.running().len());
    let op = |value: &Value| value.is_null() || ops.contains(&value.as_u64().expect("an id"));
    for row in file["ops"].as_array().expect("ops") {
        assert!(op(&row["parent"]) && row["children"].as_array().expect("a list").iter().all(op));
        let args = row["inputs"].as_array().into_iter().flatten();
        for tensor in args.filter_map(|arg| arg["tensor"].as_u64()) {
            assert!(tensors.contains(&tensor), "{row}");
        }
    }
    for row in file["tensors"].as_array().expect("tensors") {
        assert!(op(&row["producer"]) && row["consumers"].as_array().expect("a list").iter().all(op));
    }
    for kind in ["data", "hand_off", "stream"] {
        let edges = file["edges"][kind].as_array().expect("a list");
        assert!(edges.iter().all(|edge| op(&edge["from"]) && op(&edge["to"])), "{kind}");
    }
    assert!(file["edges"]["data"].as_array().expect("edges").len() > 100);
    assert!(!file["edges"]["hand_off"].as_array().expect("edges").is_empty());
}

#[test]
fn every_edge_of_the_picture_has_its_ends() {
    let step = read(&example("dlrm_default_2048"));
    let answer = changed(&step, &[&FuseEmbeddingBags]);
    let mut out = Vec::new();
    dot::write(&mut out, &answer.export(&step)).expect("room");
    let text = String::from_utf8(out).expect("text");
    let [open, close] = ['{', '}'].map(|letter| text.matches(letter).count());
    assert_eq!(open, close);
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let nodes: BTreeSet<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("op") && !line.contains("->"))
        .map(first)
        .collect();
    let edges: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once(" -> "))
        .map(|(from, to)| (from.trim().to_owned(), first(to)))
        .collect();
    assert!(edges.len() > 50 && edges.iter().all(|(from, to)| nodes.contains(from) && nodes.contains(to)));
    assert!(text.contains("style=dashed") && text.contains("[2048, 64] f32"));
    assert!(text.contains("label=\"fuse-embedding-bags\", fillcolor=\"#8dd3c7\""));
}
