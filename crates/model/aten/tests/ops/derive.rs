//! Step graphs made from execution traces alone, compared with those of the recordings of the same steps.

use std::path::{Path, PathBuf};

use steptime_aten::OpSet;
use steptime_aten::derive::{self, OpTree, TreeKind, TreeNode, TreeThread};
use steptime_aten::{Arg, Dtype, OpCall, Tensor};
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::{MarkId, MarkKind, OpId, Options, Phase, Role, StepGraph, TiVec};
use steptime_trace::Recording;

fn recordings() -> impl Iterator<Item = Recording> {
    let examples: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Described models have no times, and jobs of several ranks are in a separate folder.
    paths.retain(|path| path.is_dir() && !path.ends_with("models") && !path.ends_with("jobs"));
    paths.sort();
    paths.into_iter().flat_map(|path| steptime_trace::open(&path).unwrap().recordings)
}

fn both(recording: &Recording) -> (StepGraph, StepGraph) {
    let recorded = StepGraph::build(recording.timing.as_ref().unwrap(), &Options::default()).unwrap();
    let execution = ExecutionGraph::new(recording.execution.as_ref().unwrap());
    (recorded, derive::step_graph(&execution, &OpSet::standard()).unwrap().graph)
}

/// Returns the dependencies of marks on other threads or steps, as text for both marks.
fn hand_offs(graph: &StepGraph) -> Vec<String> {
    let word = |mark: MarkId| {
        let begins = matches!(graph.marks[mark].kind, MarkKind::OpBegin(_) | MarkKind::CallBegin(_));
        format!("{} {}", if begins { "begin" } else { "end" }, graph.names.get(graph.mark_name(mark)))
    };
    let marks = graph.marks.iter_enumerated();
    marks
        .filter(|&(mark, row)| row.wraps || graph.is_hand_off(mark))
        .map(|(mark, row)| format!("{} after {} {}", word(mark), word(row.after), row.wraps))
        .collect()
}

/// Returns the calls that each op makes itself, with the positions of its child ops between them.
fn calls(graph: &StepGraph) -> TiVec<OpId, Vec<&str>> {
    let mut calls: TiVec<OpId, Vec<&str>> = vec![Vec::new(); graph.ops.len()].into();
    for mark in &graph.marks {
        let (op, name) = match mark.kind {
            MarkKind::OpBegin(op) => (graph.ops[op].parent, "an op"),
            MarkKind::CallBegin(call) => {
                let call = &graph.calls[call];
                (call.op, graph.names.get(call.api))
            }
            _ => continue,
        };
        if let Some(op) = op {
            calls[op].push(name);
        }
    }
    calls
}

#[test]
fn ops_phases_and_hand_offs_are_those_recorded() {
    for recording in recordings() {
        let (recorded, derived) = both(&recording);
        let ops = |graph: &StepGraph| {
            let all = graph.ops.iter().map(|op| (graph.names.get(op.name).to_owned(), op.thread, op.phase));
            all.collect::<Vec<_>>()
        };
        assert!(ops(&recorded) == ops(&derived), "{}", recording.name);
        assert_eq!(hand_offs(&recorded), hand_offs(&derived), "{}", recording.name);
    }
}

#[test]
fn most_ops_make_the_calls_recorded() {
    for recording in recordings() {
        let (recorded, derived) = both(&recording);
        let pairs: Vec<_> = calls(&recorded)
            .into_iter()
            .zip(calls(&derived))
            .map(|(a, b)| (a.join(" "), b.join(" ")))
            .collect();
        let launching = pairs.iter().filter(|(a, b)| a.contains("cu") || b.contains("cu"));
        let (count, same) = launching.fold((0, 0), |(n, same), (a, b)| (n + 1, same + u32::from(a == b)));
        // The convolution that cuDNN chooses is a guess, and the product that cuBLAS chooses for a large batch.
        let guessed = !recording.name.starts_with("dlrm") || recording.name == "dlrm_8192";
        let least = if guessed { 0.85 } else { 0.95 };
        assert!(f64::from(same) >= least * f64::from(count), "{}: {same} of {count}", recording.name);
    }
}

fn node(name: &str, kind: TreeKind, parent: Option<u32>, thread: u32) -> TreeNode {
    let tensor = Arg::Tensor(Tensor::contiguous(&[64, 64], Dtype::F32));
    let call = match kind {
        TreeKind::Op => OpCall { outputs: vec![tensor.clone()], ..OpCall::new(name, vec![tensor]) },
        _ => OpCall::new(name, Vec::new()),
    };
    TreeNode { call, kind, parent, thread, origin: None, exchange: None }
}

/// Returns a step of a forward pass, `backward` in its own label, and an update.
fn step() -> OpTree {
    use TreeKind::{Annotation, Function, Op};
    let threads = vec![TreeThread { tid: 1, role: Role::Main }, TreeThread { tid: 2, role: Role::Autograd }];
    let engine = "autograd::engine::evaluate_function: ReluBackward0";
    let nodes = vec![
        node("aten::relu", Op, None, 0),
        node("aten::clamp_min", Op, Some(0), 0),
        node("## backward ##", Annotation, None, 0),
        node("aten::ones_like", Op, Some(2), 0),
        node(engine, Function, None, 1),
        node("ReluBackward0", Function, Some(4), 1),
        node("aten::sigmoid", Op, Some(5), 1),
        node("Optimizer.step#SGD.step", Annotation, None, 0),
        node("aten::neg", Op, Some(7), 0),
    ];
    OpTree { threads, nodes }
}

#[test]
fn threads_take_turns_around_the_backward_pass() {
    let graph = derive::from_tree(&step(), &OpSet::standard()).unwrap().graph;
    let engine = "autograd::engine::evaluate_function: ReluBackward0";
    assert_eq!(
        hand_offs(&graph),
        [
            "begin aten::relu after end Optimizer.step#SGD.step true".to_owned(),
            format!("end ## backward ## after end {engine} false"),
            format!("begin {engine} after end aten::ones_like false"),
        ]
    );
    let phases: Vec<Phase> = graph.ops.iter().map(|op| op.phase).collect();
    assert_eq!(phases[..2], [Phase::Forward; 2]);
    assert_eq!(phases[4..6], [Phase::Optimizer; 2]);
    assert_eq!(phases[6..], [Phase::Backward; 3]);
}

#[test]
fn a_backward_pass_without_a_label_or_an_end_hands_over_too() {
    let mut tree = step();
    tree.nodes.truncate(7);
    tree.nodes.remove(2);
    for node in &mut tree.nodes[2..] {
        node.parent = node.parent.filter(|&parent| parent > 2).map(|parent| parent - 1);
    }
    let graph = derive::from_tree(&tree, &OpSet::standard()).unwrap().graph;
    let engine = "autograd::engine::evaluate_function: ReluBackward0";
    assert_eq!(
        hand_offs(&graph),
        [
            format!("begin aten::relu after end {engine} true"),
            format!("begin {engine} after end aten::ones_like false"),
        ]
    );
}

#[test]
fn kernels_come_in_the_order_of_their_launch() {
    let derived = derive::from_tree(&step(), &OpSet::standard()).unwrap();
    let names: Vec<&str> = derived.kernels.iter().map(|k| derived.graph.op_name(k.op)).collect();
    assert_eq!(names, ["aten::clamp_min", "aten::sigmoid", "aten::neg"]);
    for kernel in &derived.kernels {
        assert_eq!(kernel.activities.len(), 1);
        let activity = &derived.graph.activities[kernel.activities[0]];
        assert_eq!(derived.graph.calls[activity.call].op, Some(kernel.op));
    }
    assert_eq!((derived.counts.known, derived.counts.unknown, derived.counts.nothing), (3, 0, 2));
}

#[test]
fn an_unknown_op_is_taken_for_one_kernel_unless_ops_are_inside() {
    let mut tree = step();
    tree.nodes[1].call.name = "mine::fused".into();
    let derived = derive::from_tree(&tree, &OpSet::standard()).unwrap();
    assert_eq!((derived.counts.unknown, derived.kernels[0].known), (1, false));
    tree.nodes[0].call.name = "mine::outer".into();
    assert_eq!(derive::from_tree(&tree, &OpSet::standard()).unwrap().counts.unknown, 1);
}

#[test]
fn a_trace_without_ops_is_refused() {
    let error = derive::step_graph(&ExecutionGraph::default(), &OpSet::standard()).unwrap_err();
    assert!(error.to_string().contains("no op"), "{error}");
}
