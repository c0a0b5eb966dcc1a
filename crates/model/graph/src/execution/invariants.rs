//! Laws that hold for every graph, even of malformed traces.

use super::fixture::{Node, trace};
use super::{Access, DependencyKind, ExecutionGraph, NodeId, StorageId};
use rustc_hash::FxHashSet;

pub(super) fn check_laws(graph: &ExecutionGraph) {
    let lifted = graph.dependencies.lift(&graph.nodes);
    for (before, after, kind) in graph.dependencies.iter().chain(lifted.iter()) {
        assert!(before < after, "{before:?} {after:?} {kind:?}");
        assert!(!graph.tree.nested(before, after));
        assert!(graph.nodes.is_operator(before) && graph.nodes.is_operator(after));
    }
    for (before, after, _) in lifted.iter() {
        assert!(graph.nodes.is_top_level(before) && graph.nodes.is_top_level(after));
    }
    for tensor in graph.tensors.all() {
        assert!(tensor.producer.is_none_or(|producer| graph.tree.encloses(producer, tensor.seen)));
        assert!(graph.tensors.storage(tensor.storage).device == tensor.device);
    }
    for node in graph.ids() {
        for (_, tensor) in graph.input_tensors(node) {
            assert!(graph.tensors.consumers(tensor).binary_search(&node).is_ok());
            assert!(graph.tensors.get(tensor).seen <= node);
        }
        assert!(graph.tree.parent(node).is_none_or(|parent| graph.tree.children(parent).contains(&node)));
        let paired = graph.pairing.forward(node);
        assert!(paired.is_none_or(|forward| forward < node && graph.pairing.backward(forward).is_some()));
    }
}

/// Checks top-level operators, one by one: every operator that wrote memory that this one accesses, or accessed memory that it writes,
/// comes before it through some path of dependencies. For traces whose operators do not overlap in time.
pub(super) fn check_order(graph: &ExecutionGraph) {
    let lifted = graph.dependencies.lift(&graph.nodes);
    let operators: Vec<NodeId> = graph.top_level().collect();
    if operators.len() > 1200 {
        return;
    }
    let position = |node: NodeId| operators.binary_search(&node).unwrap();
    let mut before: Vec<Vec<bool>> = Vec::new();
    let touched: Vec<_> = operators.iter().map(|&node| touched(graph, node)).collect();
    for (at, &node) in operators.iter().enumerate() {
        let mut reach = vec![false; operators.len()];
        for &(earlier, _) in lifted.predecessors(node) {
            let earlier = position(earlier);
            reach[earlier] = true;
            before[earlier].iter().enumerate().for_each(|(other, &reached)| reach[other] |= reached);
        }
        for other in 0..at {
            let conflict = !touched[other].1.is_disjoint(&touched[at].0)
                || !touched[other].1.is_disjoint(&touched[at].1)
                || !touched[other].0.is_disjoint(&touched[at].1);
            assert!(!conflict || reach[other], "{:?} before {node:?}", operators[other]);
        }
        before.push(reach);
    }
}

/// Returns the storages that an operator and all operators inside it read, and those that they write.
fn touched(graph: &ExecutionGraph, node: NodeId) -> (FxHashSet<StorageId>, FxHashSet<StorageId>) {
    let (mut reads, mut writes) = (FxHashSet::default(), FxHashSet::default());
    for inner in graph.ids().filter(|&inner| graph.tree.encloses(node, inner)) {
        let Some(schema) = graph.schema(inner) else { continue };
        for (at, tensor) in graph.input_tensors(inner) {
            let storage = graph.tensors.get(tensor).storage;
            match schema.argument(at) {
                Access::View => continue,
                Access::Plain => reads.insert(storage),
                Access::Write => writes.insert(storage),
            };
        }
        for (at, tensor) in graph.output_tensors(inner) {
            let tensor = graph.tensors.get(tensor);
            if schema.output(at) == Access::Plain && !reads.contains(&tensor.storage) {
                writes.insert(tensor.storage);
            }
        }
    }
    (reads, writes)
}

#[test]
fn any_trace_gives_a_graph() {
    let schemas = [
        "aten::mul(Tensor a, Tensor b) -> Tensor",
        "aten::add_(Tensor(a!) a, Tensor b) -> Tensor(a!)",
        "aten::view(Tensor(a) a) -> Tensor(a)",
        "aten::odd((((",
        "",
    ];
    let tensors = ["", "f 1 2 4", "f 1 3 4;f 4 2 2,2", "f 5 0 4", "f 0 0 0", "f 6 3 0;f 1 2 4", "f 4 2 9"];
    let mut state = 1u64;
    let mut pick = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut kinds = FxHashSet::default();
    for _ in 0..400 {
        let nodes: Vec<Node> = (0..pick(40))
            .map(|at| {
                let id = 3 + if pick(9) == 0 { pick(40) } else { at } as u64;
                let parent = if pick(3) == 0 { pick(45) as u64 } else { 2 };
                let node = Node::op(id, parent, schemas[pick(schemas.len())]);
                let node = node.inputs(tensors[pick(tensors.len())]).outputs(tensors[pick(tensors.len())]);
                let node = node.sequence(pick(6) as i64 - 1, 1 + pick(2) as u64);
                if pick(4) == 0 { node.named("XBackward0").backward(1) } else { node }
            })
            .collect();
        let graph = ExecutionGraph::new(&trace(&nodes));
        check_laws(&graph);
        kinds.extend(graph.dependencies.iter().map(|(_, _, kind)| kind));
    }
    assert!(kinds.contains(&DependencyKind::Handle) && kinds.len() == 4, "{kinds:?}");
}

#[test]
fn an_empty_trace_gives_an_empty_graph() {
    let graph = ExecutionGraph::new(&steptime_trace::ExecutionTrace::default());
    check_laws(&graph);
    assert_eq!(graph.summary(), super::Summary::default());
}
