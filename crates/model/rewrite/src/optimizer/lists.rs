//! An optimizer as read from a step, and as written back.

use rustc_hash::FxHashMap;
use steptime_aten::optimizer::{self, Gradient, Optimizer, Parameter};
use steptime_aten::{Dtype, OpCall, Tensor};
use steptime_step::TensorId;

use super::roles::Role;

/// Parameters that are updated together, with their gradients and states, by role.
pub(super) type Lists = FxHashMap<Role, Vec<TensorId>>;

/// An optimizer as read from a step.
#[derive(Debug, Clone)]
pub(super) struct FoundOptimizer {
    pub optimizer: Optimizer,
    /// The lists that it updates, in order; in the loop form, one parameter each.
    pub groups: Vec<Lists>,
}

/// The ops of an update that launch kernels, for lists of `parameters` parameters.
pub(super) fn sequence(optimizer: &Optimizer, parameters: usize) -> Vec<OpCall> {
    let tensor = Tensor::contiguous(&[1], Dtype::F32);
    let parameter = Parameter { tensor, gradient: Gradient::Dense };
    let calls = optimizer::step(optimizer, &vec![parameter; parameters]);
    let counts = |call: &OpCall| {
        let first = call.inputs.first().and_then(|arg| arg.tensors().first());
        first.is_some_and(|tensor| tensor.shape.is_empty())
    };
    calls.into_iter().filter(|call| !counts(call)).collect()
}
