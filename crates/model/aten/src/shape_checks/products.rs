//! Matrix products and attention.

use super::{Complaint, broadcast, listed, must, rank, shown, tensor};
use crate::call::{OpCall, Tensor};

/// Checks that the columns of the first are the rows of the second.
fn inner(a: &Tensor, b: &Tensor) -> Result<(), Complaint> {
    let (columns, rows) = (a.size(-1), if b.shape.len() > 1 { b.size(-2) } else { b.size(-1) });
    must(
        columns == rows,
        || {
            format!(
                "{} times {}: the first has {columns} columns, the second {rows} rows",
                shown(a),
                shown(b)
            )
        },
        || "both must be the same".into(),
    )
}

/// Checks a tensor that is added to a product.
fn added(bias: &Tensor, product: &[i64]) -> Result<(), Complaint> {
    must(
        broadcast(&bias.shape, product).as_deref() == Some(product),
        || format!("{} cannot be added to a product of {}", shown(bias), listed(product)),
        || "each size must be the product's, or 1".into(),
    )
}

pub(super) fn mm(call: &OpCall) -> Result<(), Complaint> {
    two(call, 0, 2).map(drop)
}

pub(super) fn addmm(call: &OpCall) -> Result<(), Complaint> {
    let product = two(call, 1, 2)?;
    tensor(call, 0).zip(product).map_or(Ok(()), |(bias, product)| added(bias, &product))
}

pub(super) fn bmm(call: &OpCall) -> Result<(), Complaint> {
    two(call, 0, 3).map(drop)
}

pub(super) fn baddbmm(call: &OpCall) -> Result<(), Complaint> {
    let product = two(call, 1, 3)?;
    tensor(call, 0).zip(product).map_or(Ok(()), |(bias, product)| added(bias, &product))
}

/// Checks two matrices, or batches of the same number; returns the shape of their product.
fn two(call: &OpCall, first: usize, dims: usize) -> Result<Option<Vec<i64>>, Complaint> {
    let Some((a, b)) = tensor(call, first).zip(tensor(call, first + 1)) else { return Ok(None) };
    rank("the first factor", a, dims)?;
    rank("the second factor", b, dims)?;
    let batches = |tensor: &Tensor| tensor.shape[..dims - 2].to_vec();
    must(
        batches(a) == batches(b),
        || format!("{} times {}: they are of {} and {} matrices", shown(a), shown(b), a.size(0), b.size(0)),
        || "give both as many".into(),
    )?;
    inner(a, b)?;
    let mut product = batches(a);
    product.extend([a.size(-2), b.size(-1)]);
    Ok(Some(product))
}

pub(super) fn matmul(call: &OpCall) -> Result<(), Complaint> {
    let Some((a, b)) = tensor(call, 0).zip(tensor(call, 1)) else { return Ok(()) };
    inner(a, b)?;
    let batches = |tensor: &Tensor| tensor.shape[..tensor.shape.len().saturating_sub(2)].to_vec();
    must(
        broadcast(&batches(a), &batches(b)).is_some(),
        || format!("{} times {}: their batches do not broadcast", shown(a), shown(b)),
        || "each size before the last two must be the same, or 1".into(),
    )
}

pub(super) fn mv(call: &OpCall) -> Result<(), Complaint> {
    let Some((a, b)) = tensor(call, 0).zip(tensor(call, 1)) else { return Ok(()) };
    rank("the matrix", a, 2)?;
    rank("the vector", b, 1)?;
    inner(a, b)
}

pub(super) fn linear(call: &OpCall) -> Result<(), Complaint> {
    let Some((x, weight)) = tensor(call, 0).zip(tensor(call, 1)) else { return Ok(()) };
    must(
        x.size(-1) == weight.size(-1),
        || {
            let (has, takes) = (x.size(-1), weight.size(-1));
            format!(
                "an input of {} has {has} features, and the weight {} takes {takes}",
                shown(x),
                shown(weight)
            )
        },
        || "a weight is [features out, features in]".into(),
    )?;
    let Some(bias) = tensor(call, 2) else { return Ok(()) };
    let out = if weight.shape.len() > 1 { weight.size(0) } else { 1 };
    must(
        bias.numel() == u64::try_from(out).unwrap_or(0) || bias.numel() == 1,
        || format!("a bias of {} does not match the weight {}", shown(bias), shown(weight)),
        || format!("it must be [{out}]"),
    )
}

pub(super) fn attention(call: &OpCall) -> Result<(), Complaint> {
    let (Some(query), Some(key), Some(value)) = (tensor(call, 0), tensor(call, 1), tensor(call, 2)) else {
        return Ok(());
    };
    must(
        query.size(-1) == key.size(-1),
        || {
            format!(
                "queries {} and keys {} have a last size of {} and {}",
                shown(query),
                shown(key),
                query.size(-1),
                key.size(-1)
            )
        },
        || "their last sizes must be the same".into(),
    )?;
    must(
        key.size(-2) == value.size(-2),
        || {
            format!(
                "the number of keys {} and of values {} is {} and {}",
                shown(key),
                shown(value),
                key.size(-2),
                value.size(-2)
            )
        },
        || "there must be a value for each key".into(),
    )?;
    let grouped = query.shape.len() == 4 && key.size(1) > 0 && query.size(1) % key.size(1) == 0;
    let batches = |tensor: &Tensor| tensor.shape[..tensor.shape.len().saturating_sub(2)].to_vec();
    must(
        grouped && query.size(0) == key.size(0) || broadcast(&batches(query), &batches(key)).is_some(),
        || format!("queries {} and keys {} have different batches or heads", shown(query), shown(key)),
        || "a shape is [batch, heads, length, numbers]".into(),
    )
}
