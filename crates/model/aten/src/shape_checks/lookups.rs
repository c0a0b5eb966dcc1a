//! Lookups by index.

use super::{Complaint, dimension, must, rank, shown, tensor};
use crate::call::OpCall;

pub(super) fn embedding(call: &OpCall) -> Result<(), Complaint> {
    tensor(call, 0).map_or(Ok(()), |table| rank("the table", table, 2))
}

/// Checks `embedding_bag(weight, indices, offsets, ..)`.
pub(super) fn embedding_bag(call: &OpCall) -> Result<(), Complaint> {
    embedding(call)?;
    let (Some(indices), Some(offsets)) = (tensor(call, 1), tensor(call, 2)) else { return Ok(()) };
    rank("a list of offsets", offsets, 1)?;
    must(
        indices.shape.len() == 1,
        || format!("indices of {} come with offsets of {}", shown(indices), shown(offsets)),
        || "with offsets, indices are one list of all bags".into(),
    )
}

/// Checks `index_select(input, dim, indices)`.
pub(super) fn index_select(call: &OpCall) -> Result<(), Complaint> {
    let (Some(x), Some(indices)) = (tensor(call, 0), tensor(call, 2)) else { return Ok(()) };
    if let Some(dim) = call.int_at(1) {
        dimension(x, dim)?;
    }
    must(
        indices.shape.len() <= 1,
        || format!("indices of {} are not a list", shown(indices)),
        || "give one size".into(),
    )
}

/// Checks `gather(input, dim, indices)`.
pub(super) fn gather(call: &OpCall) -> Result<(), Complaint> {
    let (Some(x), Some(indices)) = (tensor(call, 0), tensor(call, 2)) else { return Ok(()) };
    let dim = call.int_at(1).map(|dim| dimension(x, dim)).transpose()?;
    must(
        x.shape.len().max(1) == indices.shape.len().max(1),
        || {
            format!(
                "indices of {} and the input {} differ in their number of dimensions",
                shown(indices),
                shown(x)
            )
        },
        || "give both the same number of sizes".into(),
    )?;
    let fits = |at: usize| Some(at) == dim || indices.shape[at] <= x.shape[at];
    must(
        (0..x.shape.len().min(indices.shape.len())).all(fits),
        || format!("indices of {} are larger than the input {}", shown(indices), shown(x)),
        || "they may be larger only along the gathered dimension".into(),
    )
}
