//! Exchanges among a step's ops: their calls, their streams, and the activities that wait for them.

use steptime_graph::{ActivityId, StepGraph, StreamDependency, StreamId};

use super::calls::RuntimeCall;
use super::exchange::{Exchange, NOTE, awaited, memory, noted};
use super::tree::{OpTree, TreeNode};

/// Returns the calls of a node that records an exchange, before those of its label; the calls of the label; or those of a node that waits for an
/// exchange. `None` for other nodes.
pub(super) fn calls(tree: &OpTree, at: usize, children: &[Vec<u32>]) -> Option<Vec<RuntimeCall>> {
    let node = &tree.nodes[at];
    if let Some(exchange) = &node.exchange {
        let own = if children[at].is_empty() { exchange.launch() } else { Vec::new() };
        return Some(noted(exchange.beside).into_iter().chain(own).collect());
    }
    let first = node.parent.and_then(|parent| children[parent as usize].first());
    if let Some(exchange) = around(tree, at).filter(|_| first == Some(&(at as u32))) {
        return Some(exchange.launch());
    }
    is_note(node).then(awaited)
}

/// Returns the exchange around whose launch a label is set.
pub(super) fn around(tree: &OpTree, at: usize) -> Option<&Exchange> {
    tree.nodes[tree.nodes[at].parent? as usize].exchange.as_deref()
}

/// Returns the exchange that is launched at a node: its own, or that of its label.
pub(super) fn launched(tree: &OpTree, at: usize) -> Option<&Exchange> {
    tree.nodes[at].exchange.as_deref().or_else(|| around(tree, at))
}

/// Whether a node records an exchange, and launches nothing that follows from its arguments.
pub(super) fn is_note(node: &TreeNode) -> bool {
    node.call.name == NOTE
}

/// Makes each exchange on its own stream wait for the launch before it, and makes later uses of its memory wait for it: the script
/// waits for an exchange before it uses the result. Launches after a recorded wait also wait: after a wait at the end of a step, those of the
/// next step.
pub(super) fn wait(graph: &mut StepGraph, tree: &OpTree, node_of: impl Fn(steptime_graph::OpId) -> usize) {
    if graph.collectives.is_empty() {
        return;
    }
    let mut under_way: Vec<(ActivityId, &Exchange)> = Vec::new();
    // Exchanges with a recorded wait after which nothing was launched yet.
    let mut awaited: Vec<ActivityId> = Vec::new();
    let mut last: Option<ActivityId> = None;
    let mut waits = Vec::new();
    for call in graph.calls_by_hand_off() {
        let row = &graph.calls[call];
        let Some(at) = row.op.map(&node_of) else { continue };
        let node = &tree.nodes[at];
        if let Some(note) = node.origin.filter(|_| is_note(node)) {
            let over = under_way.extract_if(.., |(_, exchange)| exchange.awaited_by == Some(note));
            awaited.extend(over.map(|(from, _)| from));
        }
        for to in row.activities() {
            let wait = |from| StreamDependency { from, to, inferred: true, wraps: false };
            let exchange = graph.activities[to].collective.and(launched(tree, at));
            if let Some(exchange) = exchange.filter(|exchange| exchange.beside) {
                waits.extend(last.map(wait));
                under_way.push((to, exchange));
                continue;
            }
            if !under_way.is_empty() {
                let own = memory(&node.call);
                let (over, left) = under_way
                    .into_iter()
                    .partition(|(_, exchange)| exchange.memory.iter().any(|at| own.contains(at)));
                under_way = left;
                let over: Vec<(ActivityId, &Exchange)> = over;
                waits.extend(over.into_iter().map(|(from, _)| wait(from)));
            }
            if graph.activities[to].stream == StreamId(0) {
                waits.extend(awaited.drain(..).map(wait));
                last = Some(to);
            }
        }
    }
    let first = graph.activities.iter_enumerated().find(|(_, row)| row.stream == StreamId(0));
    let next = first.map(|(to, _)| move |from| StreamDependency { from, to, inferred: true, wraps: true });
    waits.extend(next.into_iter().flat_map(|next| awaited.iter().map(move |&from| next(from))));
    graph.waits.extend(waits);
    graph.waits.sort_by_key(|wait| wait.to);
}
