//! `index`: several index tensors, each for one dimension (a mask for all of its dimensions).

use crate::axes::{count, run};
use crate::bound_call::BoundCall;
use crate::build_lowering::{one, result, work};
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Gather, GatherKind, Kernel, Operand, Role, Slot};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{operand, read};
use crate::ops::gather::{self, capped};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[OpDef::leaf(&["aten::index", "aten::_unsafe_index"], index)
    .outputs(|call| one(&places(call)?.shape, call.tensor("self")?.dtype))
    .expand(|call| masks(call).collect())
    .backward(backward)];

/// Places that the indices address.
pub(super) struct Places {
    /// Shape of the result.
    pub(super) shape: Vec<i64>,
    /// Adjacent elements at each place.
    pub(super) row: u64,
    /// Indices of one index tensor, after broadcasting.
    pub(super) indices: u64,
    /// Bytes per index over all index tensors.
    pub(super) bytes: u64,
}

/// Whether a dimension has no index tensor. Sweeps write a shape without dimensions for it.
pub(super) fn is_missing(index: &Tensor) -> bool {
    index.device == Device::Unknown && matches!(index.shape.as_slice(), [] | [0])
}

pub(super) fn is_mask(index: &Tensor) -> bool {
    matches!(index.dtype, Dtype::Bool | Dtype::I8)
}

/// Returns the addressed places; `None` if the indices were not recorded.
pub(super) fn places(call: &BoundCall<'_>) -> Option<Places> {
    let (source, indices) = (call.tensor("self")?, call.tensors("indices"));
    if indices.iter().all(is_missing) {
        return None;
    }
    let (mut dim, mut first, mut last, mut bytes, mut by) = (0, None, 0, 0, Vec::new());
    let mut kept = Vec::new();
    for index in indices {
        if is_missing(index) {
            kept.push(dim);
            dim += 1;
            continue;
        }
        let wide = if is_mask(index) { index.shape.len().max(1) } else { 1 };
        // The number of places of a mask is only known afterwards, hence assumed to be at most all.
        let shape = if is_mask(index) { vec![index.numel() as i64] } else { index.shape.to_vec() };
        by = broadcast(&by, &shape);
        bytes += wide as u64 * if is_mask(index) { 8 } else { index.dtype.size() };
        first.get_or_insert(dim);
        last = dim + wide;
        dim += wide;
    }
    let rank = source.shape.len();
    if dim > rank {
        return None;
    }
    kept.extend(dim..rank);
    let first = first?;
    let apart = kept.iter().any(|&at| at > first && at < last);
    let before = kept.iter().take_while(|&&at| !apart && at < first).count();
    let mut shape: Vec<i64> = kept[..before].iter().map(|&at| source.shape[at]).collect();
    shape.extend(&by);
    shape.extend(kept[before..].iter().map(|&at| source.shape[at]));
    Some(Places { shape, row: run(source, last).max(1), indices: count(&by), bytes })
}

fn broadcast(a: &[i64], b: &[i64]) -> Vec<i64> {
    let rank = a.len().max(b.len());
    let size = |shape: &[i64], at: usize| (at + shape.len()).checked_sub(rank).map_or(1, |own| shape[own]);
    (0..rank).map(|at| if size(a, at) == 1 { size(b, at) } else { size(a, at) }).collect()
}

/// Returns the index tensors as read.
pub(super) fn index_operands(call: &BoundCall<'_>) -> impl Iterator<Item = Option<Operand>> {
    let all = call.tensors("indices").iter().enumerate().filter(|(_, index)| !is_missing(index));
    all.map(|(at, index)| Some(operand(Slot::Input(1, at as u16), Role::Read, index)))
}

fn index(call: &BoundCall<'_>) -> Option<Lowering> {
    let source = call.tensor("self")?;
    let places = places(call)?;
    let taken = result(call, 0, &places.shape, source.dtype);
    let kernel = Kernel::Gather(Gather {
        kind: GatherKind::Index,
        rows: source.numel() / places.row,
        lookups: taken.bytes / source.dtype.size() / places.row,
        row_bytes: places.row * source.dtype.size(),
        index_bytes: places.bytes,
    });
    let table = Some(capped(read(call, "self")?, taken.bytes));
    let operands = std::iter::once(table).chain(index_operands(call)).chain([Some(taken)]);
    Some(work(kernel, source.dtype, operands, 0))
}

/// Returns the calls of the gradient: zeros, then an addition of the values at their places.
fn backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(source), Some(places)) = (call.tensor("self"), places(call)) else { return Vec::new() };
    let zeros = Tensor::contiguous(&source.shape, source.dtype);
    let grad = Tensor::contiguous(&places.shape, source.dtype);
    let sizes = Arg::Ints(source.shape.as_slice().into());
    let outputs = vec![Arg::Tensor(zeros.clone())];
    let make = OpCall { outputs, ..OpCall::new("aten::new_zeros", vec![Arg::Tensor(grad.clone()), sizes]) };
    let inputs = vec![
        Arg::Tensor(zeros),
        call.arg_or_none("indices"),
        Arg::Tensor(grad),
        Arg::Bool(true),
        Arg::Bool(true),
    ];
    vec![make, OpCall { settings: call.settings, ..OpCall::new("aten::_index_put_impl_", inputs) }]
}

/// Returns the calls that find the places of each mask, which come first.
pub(super) fn masks(call: &BoundCall<'_>) -> impl Iterator<Item = OpCall> {
    call.tensors("indices").iter().filter(|index| !is_missing(index) && is_mask(index)).map(gather::places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::dtype::Dtype::{F32, I64};

    fn missing() -> Tensor {
        Tensor { device: Device::Unknown, ..Tensor::contiguous(&[0], I64) }
    }

    /// Lower triangle of each of 1024 matrices.
    fn triangle() -> OpCall {
        let index = Tensor::contiguous(&[36], I64);
        let matrices = Tensor::contiguous(&[1024, 9, 9], F32);
        let indices = Arg::Tensors(vec![missing(), index.clone(), index]);
        OpCall::new("aten::index", vec![Arg::Tensor(matrices), indices])
    }

    #[test]
    fn index_tensors_address_dimensions_together() {
        let Lowering::Kernel(call) = OpSet::standard().lower(&triangle()) else { panic!("no kernel") };
        let Kernel::Gather(gather) = call.kernel else { panic!("another kernel") };
        assert_eq!((gather.lookups, gather.row_bytes, gather.index_bytes), (1024 * 36, 4, 16));
        assert_eq!(OpSet::standard().outputs(&triangle()), one(&[1024, 36], Dtype::F32));
        let bytes: Vec<_> = call.operands.iter().map(|operand| operand.bytes).collect();
        assert_eq!(bytes, [1024 * 36 * 4, 288, 288, 1024 * 36 * 4]);
    }

    #[test]
    fn indices_that_were_not_recorded_leave_the_bytes() {
        let call = OpCall { inputs: vec![triangle().inputs[0].clone(), Arg::None], ..triangle() };
        assert!(matches!(OpSet::standard().lower(&call), Lowering::Unknown(_)));
    }
}
