//! Pairs of forward operators and backward functions.

use super::ids::NodeId;
use super::node::{NodeKind, Nodes};
use rustc_hash::FxHashMap;
use steptime_trace::ExecutionTrace;

/// Forward operators and backward functions, paired by autograd's sequence number.
///
/// The number counts graph nodes on the forward thread, and operators record the next one when they begin. Of all
/// operators that recorded a number, the last one made the graph node.
#[derive(Clone, Debug, Default)]
pub struct Pairing {
    forward: Vec<Option<NodeId>>,
    backward: Vec<Option<NodeId>>,
    /// Backward functions whose forward operator was found.
    pub paired: usize,
    /// Backward functions with a sequence number that no forward operator has.
    pub unpaired: usize,
    /// Backward functions without a sequence number, such as those that accumulate gradients.
    pub unnumbered: usize,
}

impl Pairing {
    pub(super) fn find(trace: &ExecutionTrace, nodes: &Nodes) -> Pairing {
        let rows = &trace.nodes;
        let mut on_thread = FxHashMap::default();
        let mut anywhere = FxHashMap::default();
        let mut pairing = Pairing {
            forward: vec![None; nodes.len()],
            backward: vec![None; nodes.len()],
            ..Pairing::default()
        };
        for row in 0..nodes.len() {
            let node = NodeId::at(row);
            let (sequence, thread) = (rows.seq_id[row], rows.fw_tid[row]);
            if nodes.kind[row] != NodeKind::Backward {
                // The engine's mark around a backward function repeats its number; it names the forward thread.
                if nodes.kind[row].ran() && sequence >= 0 && thread == 0 {
                    on_thread.insert((rows.tid[row], sequence), node);
                    anywhere.insert(sequence, node);
                }
            } else if sequence < 0 {
                pairing.unnumbered += 1;
            } else {
                let forward = match thread {
                    0 => anywhere.get(&sequence),
                    thread => on_thread.get(&(thread, sequence)),
                };
                pairing.pair(forward.copied(), node);
            }
        }
        pairing
    }

    fn pair(&mut self, forward: Option<NodeId>, backward: NodeId) {
        let Some(forward) = forward else {
            self.unpaired += 1;
            return;
        };
        self.paired += 1;
        self.forward[backward.index()] = Some(forward);
        self.backward[forward.index()].get_or_insert(backward);
    }

    /// Returns the innermost forward operator of a backward function.
    #[must_use]
    pub fn forward(&self, backward: NodeId) -> Option<NodeId> {
        self.forward.get(backward.index()).copied().flatten()
    }

    /// Returns the backward function of a forward operator, the first one if there are several.
    #[must_use]
    pub fn backward(&self, forward: NodeId) -> Option<NodeId> {
        self.backward.get(forward.index()).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::super::NodeId;
    use super::super::fixture::{Node, graph};

    #[test]
    fn the_last_operator_with_the_number_on_the_thread_is_paired() {
        let graph = graph(&[
            Node::op(3, 2, "aten::linear(Tensor x) -> Tensor").sequence(7, 1),
            Node::op(4, 3, "aten::addmm(Tensor x) -> Tensor").sequence(7, 1),
            Node::op(5, 2, "aten::relu(Tensor x) -> Tensor").sequence(7, 2),
            Node::op(6, 2, "").named("autograd::engine::evaluate_function: AddmmBackward0"),
            Node::op(7, 6, "").named("AddmmBackward0").sequence(7, 2).backward(1),
            Node::op(8, 2, "").named("ReluBackward0").sequence(9, 2).backward(1),
            Node::op(9, 2, "").named("torch::autograd::AccumulateGrad").backward(1),
        ]);
        let pairing = &graph.pairing;
        assert_eq!(pairing.forward(NodeId(6)), Some(NodeId(3)));
        assert_eq!(pairing.backward(NodeId(3)), Some(NodeId(6)));
        assert_eq!((pairing.paired, pairing.unpaired, pairing.unnumbered), (1, 1, 1));
    }
}
