//! Node with its children nested inside: the form in which a tree is rewritten.

use steptime_graph::execution::NodeId;

use super::is_engine;
use crate::call::OpCall;
use crate::derive::{Exchange, OpTree, TreeKind, TreeNode};

/// Node and the nodes inside it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Branch {
    pub call: OpCall,
    pub kind: TreeKind,
    pub thread: u32,
    pub origin: Option<NodeId>,
    pub exchange: Option<Box<Exchange>>,
    pub children: Vec<Branch>,
}

impl Branch {
    /// Returns an op that was not recorded.
    pub fn new(call: OpCall, children: Vec<Branch>) -> Branch {
        Branch { call, kind: TreeKind::Op, thread: 0, origin: None, exchange: None, children }
    }

    /// Returns the name of the op.
    pub fn name(&self) -> &str {
        &self.call.name
    }

    /// Whether the backward engine ran inside.
    pub fn has_engine(&self) -> bool {
        self.children.iter().any(|child| is_engine(child.name()) || child.has_engine())
    }

    /// Whether a node of this name is inside.
    pub fn has(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.name() == name || child.has(name))
    }

    /// Adds its nodes to a list; nodes that the backward engine runs go to the engine's thread.
    pub fn flatten(self, parent: Option<u32>, thread: u32, backward: u32, nodes: &mut Vec<TreeNode>) {
        let engine = is_engine(&self.call.name) && thread != backward;
        let (parent, thread) = if engine { (None, backward) } else { (parent, thread) };
        let at = nodes.len() as u32;
        let (origin, exchange) = (self.origin, self.exchange);
        nodes.push(TreeNode { call: self.call, kind: self.kind, parent, thread, origin, exchange });
        for child in self.children {
            child.flatten(Some(at), thread, backward, nodes);
        }
    }
}

/// Removes allocations that the CPU's parallel loops make between functions of the backward engine.
pub(super) fn tidy(branches: &mut Vec<Branch>) {
    let engine = |branch: &Branch| is_engine(&branch.call.name);
    if let (Some(first), Some(last)) = (branches.iter().position(engine), branches.iter().rposition(engine)) {
        let mut at = 0..branches.len();
        branches.retain(|branch| {
            let within = at.next().is_some_and(|at| first < at && at < last);
            !(within && branch.name() == "aten::empty")
        });
    }
    branches.iter_mut().for_each(|branch| tidy(&mut branch.children));
}

/// Returns the outermost nodes of a tree, in order, each with the nodes inside it.
pub(super) fn outermost(tree: &OpTree) -> Vec<Branch> {
    let mut inside: Vec<Vec<Branch>> = vec![Vec::new(); tree.nodes.len()];
    let mut roots = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate().rev() {
        let mut children = std::mem::take(&mut inside[at]);
        children.reverse();
        let branch = Branch {
            call: node.call.clone(),
            kind: node.kind,
            thread: node.thread,
            origin: node.origin,
            exchange: node.exchange.clone(),
            children,
        };
        match node.parent {
            Some(parent) => inside[parent as usize].push(branch),
            None => roots.push(branch),
        }
    }
    roots.reverse();
    roots
}
