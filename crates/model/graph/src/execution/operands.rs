//! Inputs and outputs of each node.

use super::args::{ArgRange, Args};
use super::ids::{NodeId, TensorId};
use super::tensor::Tensors;

/// Distinct tensors of a trace, and the arguments and returns that refer to them.
#[derive(Debug, Default)]
pub(super) struct Operands {
    pub(super) tensors: Tensors,
    pub(super) args: Args,
    /// Inputs of each node.
    pub(super) inputs: Vec<ArgRange>,
    /// Outputs of each node.
    pub(super) outputs: Vec<ArgRange>,
}

impl Operands {
    /// Returns the input tensors of a node, each with the position of its argument.
    pub(super) fn input_tensors(&self, node: NodeId) -> impl Iterator<Item = (usize, TensorId)> {
        self.args.tensors(self.inputs[node.index()])
    }

    /// Returns the output tensors of a node, each with the position of its return.
    pub(super) fn output_tensors(&self, node: NodeId) -> impl Iterator<Item = (usize, TensorId)> {
        self.args.tensors(self.outputs[node.index()])
    }
}
