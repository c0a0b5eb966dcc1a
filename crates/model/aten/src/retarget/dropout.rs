//! Dropout: one op on the GPU; on the CPU a mask and a multiplication.

use std::collections::BTreeSet;

use steptime_graph::execution::{ExecutionGraph, NodeId};

use super::branch::Branch;
use super::build::{around, empty_like, light};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;

/// CPU's op that draws factors.
const DRAWN: &str = "aten::bernoulli_";
/// Function of the gradient of the CPU's product, and that of the GPU's dropout.
const PRODUCT: &str = "MulBackward0";
const FUSED: &str = "NativeDropoutBackward0";

/// Whether an op draws its factors itself.
pub(super) fn draws(branch: &Branch) -> bool {
    branch.children.iter().any(|child| child.name() == DRAWN)
}

/// Returns the backward functions of products with a dropout mask.
pub(super) fn backward_functions(trace: &ExecutionGraph) -> BTreeSet<NodeId> {
    let of_dropout = |node: NodeId| {
        let product = trace.pairing.forward(node).filter(|&forward| trace.node_name(forward) == "aten::mul");
        let around = product.and_then(|product| trace.tree.parent(product));
        around.is_some_and(|around| trace.node_name(around) == "aten::dropout")
    };
    trace.ids().filter(|&node| trace.node_name(node) == PRODUCT && of_dropout(node)).collect()
}

/// Returns the op inside `dropout` on the GPU in training, which also returns its mask; `was` has the ops inside it on the CPU.
pub(super) fn forward(call: &OpCall, was: &[Branch]) -> Branch {
    let mut inputs: Vec<Arg> = call.inputs.iter().take(2).cloned().collect();
    inputs.push(Arg::Bool(true));
    let like = || around("empty_like", vec![light("empty_strided")]);
    let drawn = was.iter().find(|child| child.name() == DRAWN).and_then(|child| child.call.tensor_at(0));
    let outputs = call.outputs.iter().take(1).cloned().chain(drawn.map(mask)).collect();
    let native = OpCall { outputs, ..OpCall::new("aten::native_dropout", inputs) };
    Branch::new(native, vec![like(), like()])
}

/// Returns the mask of kept elements, one byte each, in the memory of the CPU's factors.
fn mask(factors: &Tensor) -> Arg {
    Arg::Tensor(Tensor { dtype: Dtype::Bool, ..factors.clone() })
}

/// Renames the engine's event and the function of a product with a mask, and replaces the ops that they call.
pub(super) fn rename(branch: &mut Branch, functions: &BTreeSet<NodeId>) {
    let is_function = |branch: &Branch| branch.origin.is_some_and(|origin| functions.contains(&origin));
    if branch.name().ends_with(PRODUCT) && branch.children.iter().any(is_function) {
        branch.call.name = branch.call.name.replace(PRODUCT, FUSED);
    }
    if is_function(branch) {
        branch.call.name = FUSED.into();
        for child in branch.children.iter_mut().filter(|child| child.name() == "aten::mul") {
            child.call.name = "aten::native_dropout_backward".into();
            if let Some(factors) = child.call.tensor_at(1).cloned() {
                child.call.inputs[1] = mask(&factors);
            }
            child.call.inputs.push(Arg::Float(1.0));
            child.children = vec![empty_like()];
        }
    }
    branch.children.iter_mut().for_each(|child| rename(child, functions));
}
