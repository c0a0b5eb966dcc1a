//! Where one host thread lets another go on: the backward engine's thread runs while the main one waits for it.

use steptime_graph::Role;

use super::tree::{OpTree, TreeKind};

/// The op that makes the gradient that `backward` starts from.
const ROOT_GRADIENT: &str = "aten::ones_like";

/// A thread stops, and another one goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// The last node to begin on the thread that stops.
    pub last: u32,
    /// The first node to begin on the thread that goes on.
    pub next: u32,
}

/// The turns that the main thread and those of the backward engine take, in order.
pub(super) fn turns(tree: &OpTree) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut last: Option<u32> = None;
    for (at, node) in (0u32..).zip(&tree.nodes) {
        if tree.threads[node.thread as usize].role == Role::Other {
            continue;
        }
        if let Some(last) = last
            && tree.nodes[last as usize].thread != node.thread
        {
            turns.push(Turn { last, next: at });
        }
        last = Some(at);
    }
    // The engine's thread has the last word where nothing follows the backward pass.
    if let Some(last) = last
        && tree.nodes[last as usize].thread != 0
        && let Some(next) = tree.nodes.iter().position(|node| node.thread == 0)
    {
        turns.push(Turn { last, next: next as u32 });
    }
    turns
}

/// Whether an annotation that encloses the last node before a turn lasts until after it: it does when it is
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
