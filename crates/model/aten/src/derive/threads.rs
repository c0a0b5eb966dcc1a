//! Turns between host threads: the thread of the backward engine runs while the main thread waits for it.

use steptime_graph::Role;

use super::tree::{OpTree, TreeKind};

/// Op that creates the gradient from which `backward` starts.
const ROOT_GRADIENT: &str = "aten::ones_like";

/// Switch from one thread to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadSwitch {
    /// Last node that begins on the thread that stops.
    pub last: u32,
    /// First node that begins on the thread that continues.
    pub next: u32,
}

/// Returns the turns between the main thread and those of the backward engine, in order.
pub(super) fn turns(tree: &OpTree) -> Vec<ThreadSwitch> {
    let mut turns = Vec::new();
    let mut last: Option<u32> = None;
    for (at, node) in (0u32..).zip(&tree.nodes) {
        if tree.threads[node.thread as usize].role == Role::Other {
            continue;
        }
        if let Some(last) = last
            && tree.nodes[last as usize].thread != node.thread
        {
            turns.push(ThreadSwitch { last, next: at });
        }
        last = Some(at);
    }
    // If nothing follows the backward pass, the step ends on the engine's thread.
    if let Some(last) = last
        && tree.nodes[last as usize].thread != 0
        && let Some(next) = tree.nodes.iter().position(|node| node.thread == 0)
    {
        turns.push(ThreadSwitch { last, next: next as u32 });
    }
    turns
}

/// Whether an annotation around the last node before a turn lasts until after the turn: it does if it is
/// around the call of `backward`.
pub(super) fn stays_open(tree: &OpTree, annotation: u32, last: u32) -> bool {
    let node = &tree.nodes[annotation as usize];
    if node.kind != TreeKind::Annotation {
        return false;
    }
    if annotation == last || node.call.name.to_ascii_lowercase().contains("backward") {
        return true;
    }
    let mut at = Some(last);
    while let Some(inner) = at.filter(|&inner| inner != annotation) {
        if tree.nodes[inner as usize].call.name == ROOT_GRADIENT {
            return true;
        }
        at = tree.nodes[inner as usize].parent;
    }
    false
}
