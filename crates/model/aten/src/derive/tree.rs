//! Step as a tree of ops: the common form of an execution trace and a retargeted step.

use std::collections::BTreeMap;

use steptime_graph::Role;
use steptime_graph::execution::{ExecutionGraph, NodeId, NodeKind, TensorId};
use steptime_graph::names::EventName;

use super::exchange::Exchange;
use crate::call::OpCall;
use crate::from_execution;

/// Marks where PyTorch passes an op to Python to compute its shapes. Nothing is computed inside.
const DISPATCH: [&str; 2] = ["PythonDispatchMode", "PythonSubclass"];

/// Whether an op's shapes were computed in Python, without computing its values.
pub(crate) fn is_dispatched(graph: &ExecutionGraph, node: NodeId) -> bool {
    graph.fake && graph.tree.children(node).iter().any(|&child| is_dispatch(graph, child))
}

/// Whether this marks the dispatch of an op to Python. A mark without an op around it was never closed by the recorder: the rest
/// of the step is inside it.
fn is_dispatch(graph: &ExecutionGraph, node: NodeId) -> bool {
    let of_op = graph.tree.parent(node).is_some_and(|parent| graph.nodes.is_operator(parent));
    of_op && DISPATCH.contains(&graph.node_name(node))
}

/// Whether a mark is the dispatch of an annotation's beginning: the annotation's ops follow it inside the mark.
fn opens(graph: &ExecutionGraph, mark: NodeId, annotation: NodeId) -> bool {
    graph.fake
        && DISPATCH.contains(&graph.node_name(mark))
        && graph.nodes.kind[annotation.index()] == NodeKind::Annotation
}

/// Whether most results of ops that were dispatched to Python are on another device than `meta`. If they are on `meta`
/// themselves, they have no placeholders.
fn are_elsewhere(graph: &ExecutionGraph) -> bool {
    let handed = graph.ids().filter(|&row| is_dispatched(graph, row));
    let given = handed.flat_map(|row| graph.output_tensors(row).map(|(_, tensor)| tensor));
    let on_meta = |tensor: TensorId| graph.name(graph.tensors.get(tensor).device) == "meta";
    given.map(|tensor| if on_meta(tensor) { -1_i64 } else { 1 }).sum::<i64>() > 0
}

/// Whether an op only creates the placeholder of a fake tensor: a tensor on `meta`, in a trace whose ops are dispatched to Python.
fn stands_in(graph: &ExecutionGraph, row: NodeId) -> bool {
    let mut given = graph.output_tensors(row).peekable();
    let on_meta = |tensor: TensorId| graph.name(graph.tensors.get(tensor).device) == "meta";
    given.peek().is_some() && given.all(|(_, tensor)| on_meta(tensor)) && !is_dispatched(graph, row)
}

/// Kind of a node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeKind {
    /// Op with a schema: it may launch something.
    Op,
    /// Function or mark of the autograd engine, or another function without a schema.
    Function,
    /// Label around a piece of code.
    Annotation,
}

/// Op, with its position in the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeNode {
    /// Op and its arguments; only the name if it is not an op.
    pub call: OpCall,
    /// Kind of the node.
    pub kind: TreeKind,
    /// Node around it, an index of [`OpTree::nodes`]; it comes earlier.
    pub parent: Option<u32>,
    /// Thread that runs it, an index of [`OpTree::threads`].
    pub thread: u32,
    /// Node of the execution trace that it was made from.
    pub origin: Option<NodeId>,
    /// Exchange with other ranks.
    pub exchange: Option<Box<Exchange>>,
}

/// Host thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeThread {
    /// Thread id in the trace.
    pub tid: i64,
    /// Role in the step.
    pub role: Role,
}

/// Step: its ops in the order in which they begin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpTree {
    /// Host threads, the main one first.
    pub threads: Vec<TreeThread>,
    /// Ops, functions and annotations of all threads.
    pub nodes: Vec<TreeNode>,
}

impl OpTree {
    /// Returns the step of an execution trace: the first complete one if the profiler marked several.
    #[must_use]
    pub fn from_execution(graph: &ExecutionGraph) -> OpTree {
        let rows = rows(graph);
        let threads = threads(graph, &rows);
        let index: BTreeMap<i64, u32> = (0..).zip(&threads).map(|(at, thread)| (thread.tid, at)).collect();
        // For each node of the trace: its index in the tree, or that of the innermost node around it that is in the tree.
        let mut place: Vec<Option<u32>> = Vec::with_capacity(graph.nodes.len());
        let mut nodes = Vec::with_capacity(rows.len());
        let mut wanted = rows.iter().copied().peekable();
        for row in graph.ids() {
            // A node whose parent ran on another thread is outermost on its own thread.
            let around = graph.tree.parent(row).and_then(|parent| place[parent.index()]);
            if wanted.next_if_eq(&row).is_none() {
                place.push(around);
                continue;
            }
            let kind = match graph.nodes.kind[row.index()] {
                NodeKind::Operator => TreeKind::Op,
                NodeKind::Annotation => TreeKind::Annotation,
                _ => TreeKind::Function,
            };
            let call = match kind {
                TreeKind::Op if !copies_itself(graph, row) => from_execution::op_call(graph, row),
                _ => OpCall::new(graph.node_name(row), Vec::new()),
            };
            let thread = index[&tid(graph, row)];
            let parent = around.filter(|&at| nodes_thread(&nodes, at) == thread);
            place.push(Some(nodes.len() as u32));
            if let Some(mark) = graph.tree.parent(row).filter(|&mark| opens(graph, mark, row)) {
                place[mark.index()] = Some(nodes.len() as u32);
            }
            let exchange = Exchange::find(graph, row).map(Box::new);
            nodes.push(TreeNode { call, kind, parent, thread, origin: Some(row), exchange });
        }
        OpTree { threads, nodes }
    }

    /// Returns the names of a thread's nodes with their depth, in order: two trees are compared by them.
    pub fn names(&self, thread: u32) -> impl Iterator<Item = (usize, &str)> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            depths.push(node.parent.map_or(0, |parent| depths[parent as usize] + 1));
        }
        let all = self.nodes.iter().zip(depths);
        all.filter(move |(node, _)| node.thread == thread).map(|(node, depth)| (depth, &*node.call.name))
    }

    /// Returns the children of each node, in order.
    pub(crate) fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in (0u32..).zip(&self.nodes) {
            if let Some(parent) = node.parent {
                children[parent as usize].push(at);
            }
        }
        children
    }
}

fn nodes_thread(nodes: &[TreeNode], at: u32) -> u32 {
    nodes[at as usize].thread
}

fn tid(graph: &ExecutionGraph, row: NodeId) -> i64 {
    i64::try_from(graph.nodes.thread[row.index()]).unwrap_or(i64::MAX)
}

/// Whether an op copies a tensor to itself, as at the end of a sparse in-place addition: such a copy does nothing.
fn copies_itself(graph: &ExecutionGraph, row: NodeId) -> bool {
    let mut tensors = graph.input_tensors(row).map(|(_, tensor)| tensor);
    graph.node_name(row) == "aten::copy_" && tensors.next() == tensors.next()
}

/// Returns for each node whether `is` holds for it or a node around it.
fn within(graph: &ExecutionGraph, is: impl Fn(NodeId) -> bool) -> Vec<bool> {
    let mut within: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    for node in graph.ids() {
        let around = graph.tree.parent(node).is_some_and(|parent| within[parent.index()]);
        within.push(around || is(node));
    }
    within
}

/// Returns the nodes of the step, in order.
fn rows(graph: &ExecutionGraph) -> Vec<NodeId> {
    let is_step = |row| EventName::parse(graph.node_name(row)).is_step();
    let marks: Vec<NodeId> = graph.ids().filter(|&row| is_step(row)).collect();
    let (from, to) = match marks[..] {
        [first, next, ..] => (Some(first), Some(next)),
        _ => (None, None),
    };
    let dispatched = within(graph, |node| graph.fake && is_dispatch(graph, node));
    let found_in_python =
        |row: NodeId| graph.fake && (DISPATCH.contains(&graph.node_name(row)) || dispatched[row.index()]);
    let in_python = graph.fake && are_elsewhere(graph);
    let placeholders = within(graph, |node| in_python && stands_in(graph, node));
    let ran = |&row: &NodeId| {
        graph.nodes.kind[row.index()].ran()
            && !found_in_python(row)
            && !placeholders[row.index()]
            && !is_step(row)
            && from.is_none_or(|from| row > from)
            && to.is_none_or(|to| row < to)
    };
    graph.ids().filter(ran).collect()
}

/// Returns the threads: the main one first, which is the busiest outside of the backward engine, then the others in order of their beginning.
///
/// Without a GPU, the engine runs on the thread that called it. With one, that thread still runs its functions on CPU
/// tensors.
fn threads(graph: &ExecutionGraph, rows: &[NodeId]) -> Vec<TreeThread> {
    let mut seen: Vec<(i64, [usize; 2])> = Vec::new();
    let mut place: BTreeMap<i64, usize> = BTreeMap::new();
    let engine = within(graph, |node| EventName::parse(graph.node_name(node)).is_engine());
    for &row in rows {
        let tid = tid(graph, row);
        let at = *place.entry(tid).or_insert_with(|| {
            seen.push((tid, [0; 2]));
            seen.len() - 1
        });
        seen[at].1[usize::from(engine[row.index()])] += 1;
    }
    let Some(main) = seen.iter().max_by_key(|thread| thread.1).map(|thread| thread.0) else {
        return Vec::new();
    };
    let role = |thread: &(i64, [usize; 2])| if thread.1[1] > 0 { Role::Autograd } else { Role::Other };
    let others = seen.iter().filter(|thread| thread.0 != main);
    let others = others.map(|thread| TreeThread { tid: thread.0, role: role(thread) });
    std::iter::once(TreeThread { tid: main, role: Role::Main }).chain(others).collect()
}
