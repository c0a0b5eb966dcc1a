//! Elementwise ops, whose operands are broadcast to one shape.

use super::{Complaint, broadcast, listed, must, shown};
use crate::call::{Arg, OpCall, Tensor};

fn tensors(call: &OpCall) -> impl Iterator<Item = &Tensor> {
    call.inputs.iter().filter_map(|arg| if let Arg::Tensor(tensor) = arg { Some(tensor) } else { None })
}

/// Checks that all operands broadcast to one shape, the shape of the result.
pub(super) fn together(call: &OpCall) -> Result<(), Complaint> {
    spread(call).map(drop)
}

/// Checks that the others broadcast to the shape of the first operand, which is written.
pub(super) fn in_place(call: &OpCall) -> Result<(), Complaint> {
    let shape = spread(call)?;
    let Some(first) = tensors(call).next() else { return Ok(()) };
    must(
        first.shape.as_slice() == shape.as_slice(),
        || format!("a result of {} does not fit the output of {}", listed(&shape), shown(first)),
        || "the output must have the largest sizes".into(),
    )
}

fn spread(call: &OpCall) -> Result<Vec<i64>, Complaint> {
    let mut shape: Vec<i64> = Vec::new();
    for tensor in tensors(call) {
        shape = broadcast(&shape, &tensor.shape).ok_or_else(|| {
            (
                format!("{} and {} do not broadcast", listed(&shape), shown(tensor)),
                "sizes are compared from the last on: each pair must be equal, or one of them 1".into(),
            )
        })?;
    }
    Ok(shape)
}
