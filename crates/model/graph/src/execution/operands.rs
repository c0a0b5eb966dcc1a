//! What each node takes and gives.

use super::args::{ArgRange, Args};
use super::ids::{NodeId, TensorId};
use super::tensor::Tensors;

/// The tensors of a trace, told apart, and the arguments and returns that name them.
#[derive(Debug, Default)]
pub(super) struct Operands {
    pub(super) tensors: Tensors,
    pub(super) args: Args,
    /// What each node takes.
    pub(super) inputs: Vec<ArgRange>,
    /// What each node gives.
    pub(super) outputs: Vec<ArgRange>,
}

impl Operands {
    /// The tensors a node takes, each with the position of its argument.
    pub(super) fn input_tensors(&self, node: NodeId) -> impl Iterator<Item = (usize, TensorId)> {
        self.args.tensors(self.inputs[node.index()])
    }

    /// The tensors a node gives, each with the position of its return.
    pub(super) fn output_tensors(&self, node: NodeId) -> impl Iterator<Item = (usize, TensorId)> {
        self.args.tensors(self.outputs[node.index()])
    }
}
