//! Layouts that the `meta` device does not keep: its convolutions give channels first whatever they take.

use steptime_graph::execution::ExecutionGraph;

use crate::derive::OpTree;

/// Where a convolution has its weight.
const WEIGHT: usize = 1;

/// How many convolutions of a step without memory have a weight with channels last, and give channels first.
pub(super) fn lost(trace: &ExecutionGraph, tree: &OpTree) -> usize {
    if !trace.fake {
        return 0;
    }
    let loses = |call: &crate::call::OpCall| {
        let weight = call.tensor_at(WEIGHT).filter(|weight| weight.is_channels_last());
        weight.is_some()
            && call.output(0).is_some_and(|given| !given.is_channels_last() && given.is_contiguous())
    };
    tree.nodes.iter().filter(|node| node.call.name == "aten::convolution" && loses(&node.call)).count()
}
