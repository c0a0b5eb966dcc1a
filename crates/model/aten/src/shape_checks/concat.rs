//! Concatenations and stacks.

use super::{Complaint, dimension, must, shown};
use crate::call::{OpCall, Tensor};

/// Checks `cat(tensors, dim)`: all sizes but one are the same. Empty tensors of one dimension fit all.
pub(super) fn cat(call: &OpCall) -> Result<(), Complaint> {
    let empty = |tensor: &&Tensor| tensor.shape.as_slice() != [0];
    let all: Vec<&Tensor> = call.tensors_at(0).iter().filter(empty).collect();
    let Some((first, rest)) = all.split_first() else { return Ok(()) };
    let dim = dimension(first, call.int_at(1).unwrap_or(0))?;
    for other in rest {
        let alike = first.shape.len() == other.shape.len()
            && (0..first.shape.len()).all(|at| at == dim || first.shape[at] == other.shape[at]);
        must(
            alike,
            || format!("{} and {} cannot be joined along dimension {dim}", shown(first), shown(other)),
            || "all other sizes must be the same".into(),
        )?;
    }
    Ok(())
}

/// Checks `stack(tensors, dim)`: all sizes are the same.
pub(super) fn stack(call: &OpCall) -> Result<(), Complaint> {
    let Some((first, rest)) = call.tensors_at(0).split_first() else { return Ok(()) };
    match rest.iter().find(|other| other.shape != first.shape) {
        None => Ok(()),
        Some(other) => Err((
            format!("{} and {} cannot be stacked", shown(first), shown(other)),
            "all must have the same sizes".into(),
        )),
    }
}
