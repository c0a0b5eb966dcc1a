//! Replacement of ops that PyTorch does not choose in 16 bits.

use steptime_aten::Arg;
use steptime_step::{Call, NewOp, OpId, Patch, Place, TensorId};

/// Replaces an op by another.
pub(super) fn replace(patch: &mut Patch, op: OpId, new: NewOp) {
    patch.insert.push((Place::After(op), new));
    patch.remove.push(op);
}

pub(super) fn op(name: &str, inputs: Vec<Arg<TensorId>>, outputs: Vec<Arg<TensorId>>) -> NewOp {
    NewOp::new(name, Call { inputs, outputs, ..Call::default() })
}

/// The first tensor at an argument position of a call.
pub(super) fn tensor(call: &Call, at: usize) -> Option<TensorId> {
    call.inputs.get(at)?.tensors().first().copied()
}
