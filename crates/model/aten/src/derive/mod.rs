//! A step graph from ops alone: what ran on the host, which calls it made, what they launched.
//!
//! A recording shows the beginning and the end of every op and of every call. An execution trace has the ops
//! only, and their order. The rest follows: ops nest, an op ends before the next one beside it begins, the calls
//! are those its kernels need ([`calls`]), and threads take turns where the order of ops says so.
//! No time is known: the graph has no samples.

pub mod calls;
mod error;
pub mod exchange;
mod library;
mod marks;
mod meet;
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
use crate::op_def::Lowering;
use crate::op_set::OpSet;
use crate::place::Place;

/// What an op launches.
#[derive(Debug, Clone, PartialEq)]
pub struct OpLaunch {
    /// The op.
    pub op: OpId,
    /// Where its operands lie.
    pub places: SmallVec<[Place; 4]>,
    /// The kernels it launches, all together.
    pub call: KernelCall,
    /// What it puts on the device; at least one activity.
    pub activities: Vec<ActivityId>,
    /// Whether the op is known; else its bytes are all that is.
    pub known: bool,
}

/// How many ops launch what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ops that launch kernels which are known.
    pub known: usize,
    /// Ops that are not known and taken to launch one kernel.
    pub unknown: usize,
    /// Ops that launch nothing by themselves.
    pub nothing: usize,
}

/// A step graph without times, and what its ops launch.
#[derive(Debug, Clone)]
pub struct DerivedStep {
    /// The graph; it has no samples.
    pub graph: StepGraph,
    /// What is launched, in the order in which the device runs it.
    pub kernels: Vec<OpLaunch>,
    /// For each op of the graph, its node of the tree.
    pub nodes: TiVec<OpId, u32>,
    /// How many ops launch what.
    pub counts: Counts,
}

/// The step graph of an execution trace recorded on a GPU.
///
/// # Errors
/// Where the trace has no op.
pub fn step_graph(trace: &ExecutionGraph, ops: &OpSet) -> Result<DerivedStep, Error> {
    of_tree(&OpTree::from_execution(trace), ops)
}

/// The step graph of a tree of ops.
///
/// # Errors
/// Where the tree has no node.
pub fn of_tree(tree: &OpTree, ops: &OpSet) -> Result<DerivedStep, Error> {
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

/// Whether an op leaves what it would launch to an op inside it: one overload calls another, in place by the one with a
/// result, or dense plus sparse by index.
#[must_use]
pub fn delegates(op: &str, inside: &str) -> bool {
    inside.trim_end_matches('_') == op.trim_end_matches('_') || inside == "aten::index_add_"
}

/// What a node launches by itself, and whether it is known.
fn lower(node: &TreeNode, inside: &[&TreeNode], ops: &OpSet) -> Option<(KernelCall, bool)> {
    let mut names = inside.iter().map(|child| &*child.call.name);
    if node.kind != TreeKind::Op
        || meet::is_note(node)
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
