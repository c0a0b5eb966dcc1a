//! Uses of tensors by ops inside another.

use steptime_step::{OpId, StepIr, TensorId};

/// Whether an op inside another takes or makes a tensor: the outer one only passes it on.
pub(crate) fn is_passed_on(step: &StepIr, op: OpId, tensor: TensorId) -> bool {
    step.subtree(op).into_iter().skip(1).any(|inner| {
        let call = step.ops[inner].call.as_deref();
        call.is_some_and(|call| call.takes().chain(call.gives()).any(|used| used == tensor))
    })
}
