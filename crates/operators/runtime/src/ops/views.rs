//! Ops that compute nothing: views, allocations, sparse tensors of two dense ones, queries.

use steptime_step::TensorId;

use crate::binder::{Binder, Built, Refusal};
use crate::row::{Row, runs};

pub(super) const ROWS: &[Row] = &[
    runs("aten::view", whole),
    runs("aten::_unsafe_view", whole),
    runs("aten::_reshape_alias", whole),
    runs("aten::t", whole),
    runs("aten::transpose", whole),
    runs("aten::permute", whole),
    runs("aten::unsqueeze", whole),
    runs("aten::squeeze", whole),
    runs("aten::expand", whole),
    runs("aten::expand_as", whole),
    runs("aten::detach", whole),
    runs("aten::detach_", whole),
    runs("aten::alias", whole),
    runs("aten::lift_fresh", whole),
    runs("aten::narrow", narrow),
    runs("aten::slice", narrow),
    runs("aten::select", narrow),
    runs("aten::as_strided", strided),
    runs("aten::split_with_sizes", split),
    runs("aten::broadcast_tensors", nothing),
    runs("aten::empty", nothing),
    runs("aten::empty_like", nothing),
    runs("aten::empty_strided", nothing),
    runs("aten::new_empty", nothing),
    runs("aten::resize_", nothing),
    runs("aten::record_stream", nothing),
    runs("aten::pin_memory", whole),
    runs("aten::result_type", nothing),
    runs("aten::_nnz", nothing),
    runs("aten::sparse_dim", nothing),
    runs("aten::is_coalesced", nothing),
    runs("aten::_sparse_coo_tensor_unsafe", of_parts),
    runs("aten::_sparse_coo_tensor_with_dims_and_tensors", of_parts),
    runs("aten::_indices", part),
    runs("aten::_values", part),
];

fn nothing(_: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    Ok(Built::Nothing)
}

/// A result that begins with the first element of the first argument.
fn whole(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let (of, view) = (b.id(0)?, b.result(0)?);
    if b.value(of).is_sparse() {
        if let Some(parts) = b.places.sparse.get(&of).cloned() {
            b.places.sparse.insert(view, parts);
        }
        return Ok(Built::Nothing);
    }
    alias(b, view, of, 0)
}

/// `narrow(self, dim, start, length)`, `slice(self, dim, start, ...)`, `select(self, dim, index)`.
fn narrow(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let of = b.id(0)?;
    let (dim, mut start) = (b.int(1)?, if b.is_none(2) { 0 } else { b.int(2)? });
    let value = b.value(of);
    let rank = value.shape.len() as i64;
    let dim = usize::try_from(if dim < 0 { dim + rank } else { dim }).unwrap_or(usize::MAX);
    let (size, stride) =
        value.shape.get(dim).zip(value.strides.get(dim)).ok_or("it has no such dimension")?;
    if start < 0 {
        start += size;
    }
    alias(b, b.result(0)?, of, start.saturating_mul(*stride))
}

/// `as_strided(self, size, stride, storage_offset)`.
fn strided(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let of = b.id(0)?;
    let shift = if b.is_none(3) { 0 } else { b.int(3)? - b.value(of).offset as i64 };
    alias(b, b.result(0)?, of, shift)
}

/// `split_with_sizes(self, split_sizes, dim)`.
fn split(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let (of, sizes, dim) = (b.id(0)?, b.sizes(1)?, b.int(2)?);
    let stride = usize::try_from(dim).ok().and_then(|dim| b.value(of).strides.get(dim)).copied();
    let stride = stride.ok_or("it has no such dimension")?;
    let mut shift = 0;
    for (&view, size) in b.call()?.outputs.iter().flat_map(|arg| arg.tensors()).zip(sizes) {
        alias(b, view, of, shift)?;
        shift += size.saturating_mul(stride);
    }
    Ok(Built::Nothing)
}

fn alias(b: &mut Binder<'_, '_>, view: TensorId, of: TensorId, shift: i64) -> Result<Built, Refusal> {
    match view == of || b.places.alias(view, of, shift) {
        true => Ok(Built::Nothing),
        false => Err("its result has memory of its own".to_owned()),
    }
}

/// A sparse tensor of indices and values.
fn of_parts(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let first = if b.name().ends_with("unsafe") { 0 } else { 3 };
    let (parts, whole) = ([b.id(first)?, b.id(first + 1)?], b.result(0)?);
    b.places.sparse.insert(whole, vec![parts]);
    Ok(Built::Nothing)
}

/// Indices or values of a sparse tensor.
fn part(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let which = usize::from(b.name() == "aten::_values");
    let parts = b.places.sparse.get(&b.id(0)?).ok_or("the parts of its sparse tensor are not known")?;
    let &[parts] = &parts[..] else { return Err("it takes a sum of sparse tensors".to_owned()) };
    let part = parts[which];
    alias(b, b.result(0)?, part, 0)
}

/// Names of these ops, and of moves between devices.
pub(super) const NAMES: &[&str] = &[
    "aten::view",
    "aten::_unsafe_view",
    "aten::_reshape_alias",
    "aten::t",
    "aten::transpose",
    "aten::permute",
    "aten::unsqueeze",
    "aten::squeeze",
    "aten::expand",
    "aten::expand_as",
    "aten::detach",
    "aten::detach_",
    "aten::alias",
    "aten::lift_fresh",
    "aten::narrow",
    "aten::slice",
    "aten::select",
    "aten::as_strided",
    "aten::split_with_sizes",
    "aten::broadcast_tensors",
    "aten::empty",
    "aten::empty_like",
    "aten::empty_strided",
    "aten::new_empty",
    "aten::resize_",
    "aten::record_stream",
    "aten::pin_memory",
    "aten::result_type",
    "aten::_nnz",
    "aten::sparse_dim",
    "aten::is_coalesced",
    "aten::_sparse_coo_tensor_unsafe",
    "aten::_sparse_coo_tensor_with_dims_and_tensors",
    "aten::_indices",
    "aten::_values",
    "aten::to",
    "aten::_to_copy",
];
