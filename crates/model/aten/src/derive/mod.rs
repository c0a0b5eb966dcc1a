//! Step graph from ops alone: the ops of the host, their calls, and the device work that these launch.
//!
//! A recording has the beginning and the end of every op and of every call. An execution trace has only the ops
//! and their order. The rest follows: ops nest, an op ends before the next one at its level begins, the calls
//! are those that its kernels need ([`calls`]), and threads take turns in the order of ops.
//! Times are not known: the graph has no samples.

pub mod calls;
mod error;
pub mod exchange;
mod exchange_waits;
mod library;
mod marks;
mod threads;
mod tree;

pub use error::Error;
pub use exchange::Exchange;
pub(crate) use tree::is_dispatched;
pub use tree::{OpTree, TreeKind, TreeNode, TreeThread};

use smallvec::SmallVec;
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::{ActivityId, OpId, StepGraph, TiVec};

use crate::kernel::KernelCall;
use crate::memory_key::Place;
use crate::op_def::Lowering;
use crate::op_set::OpSet;

/// Launches of an op.
#[derive(Debug, Clone, PartialEq)]
pub struct OpLaunch {
    /// Op that launches them.
    pub op: OpId,
    /// Places of its operands.
    pub places: SmallVec<[Place; 4]>,
    /// Kernels that it launches, as one call.
    pub call: KernelCall,
    /// Device activities that it launches; at least one.
    pub activities: Vec<ActivityId>,
    /// Whether the op is known; otherwise only its bytes are.
    pub known: bool,
}

/// Numbers of ops by the kind of their launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ops that launch known kernels.
    pub known: usize,
    /// Unknown ops, assumed to launch one kernel.
    pub unknown: usize,
    /// Ops that launch nothing themselves.
    pub nothing: usize,
}

/// Step graph without times, and the launches of its ops.
#[derive(Debug, Clone)]
pub struct DerivedStep {
    /// Graph of the step; it has no samples.
    pub graph: StepGraph,
    /// Launches, in the order in which the device runs them.
    pub kernels: Vec<OpLaunch>,
    /// Node of the tree for each op of the graph.
    pub nodes: TiVec<OpId, u32>,
    /// Numbers of ops by the kind of their launches.
    pub counts: Counts,
}

/// Returns the step graph of an execution trace recorded on a GPU.
///
/// # Errors
/// If the trace has no op.
pub fn step_graph(trace: &ExecutionGraph, ops: &OpSet) -> Result<DerivedStep, Error> {
    from_tree(&OpTree::from_execution(trace), ops)
}

/// Returns the step graph of a tree of ops.
///
/// # Errors
/// If the tree has no node.
pub fn from_tree(tree: &OpTree, ops: &OpSet) -> Result<DerivedStep, Error> {
    if tree.nodes.is_empty() {
        return Err(Error::Empty);
    }
    let children = tree.children();
    let mut counts = Counts::default();
    let work: Vec<Option<(KernelCall, bool)>> = tree
        .nodes
        .iter()
        .zip(&children)
        .map(|(node, children)| {
            let inside: Vec<&TreeNode> = children.iter().map(|&child| &tree.nodes[child as usize]).collect();
            let lowered = lower(node, &inside, ops);
            match &lowered {
                Some((_, true)) => counts.known += 1,
                Some((_, false)) => counts.unknown += 1,
                None => counts.nothing += usize::from(node.kind == TreeKind::Op),
            }
            lowered
        })
        .collect();
    let pauses = threads::turns(tree);
    let (graph, kernels, nodes) = marks::build(tree, &children, &work, &pauses);
    Ok(DerivedStep { graph, kernels, nodes, counts })
}

/// Whether an op delegates its launches to an op inside it: one overload calls another, the in-place overload calls the one with a
/// result, or dense plus sparse calls an addition by index.
#[must_use]
pub fn delegates(op: &str, inside: &str) -> bool {
    inside.trim_end_matches('_') == op.trim_end_matches('_') || inside == "aten::index_add_"
}

/// Returns the launches of a node itself, and whether they are known.
fn lower(node: &TreeNode, inside: &[&TreeNode], ops: &OpSet) -> Option<(KernelCall, bool)> {
    let mut names = inside.iter().map(|child| &*child.call.name);
    if node.kind != TreeKind::Op
        || exchange_waits::is_note(node)
        || names.any(|child| delegates(&node.call.name, child))
    {
        return None;
    }
    match ops.lower(&node.call) {
        Lowering::Kernel(call) => Some((call, true)),
        // The ops inside an unknown one launch its kernels.
        Lowering::Unknown(call) if inside.is_empty() => Some((call, false)),
        _ => None,
    }
}
