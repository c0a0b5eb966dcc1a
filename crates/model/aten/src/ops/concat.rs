//! Concatenation. The gradient of each part is a view of the whole gradient: no work.

use crate::axes::{axis, count};
use crate::bound_call::BoundCall;
use crate::build_lowering::{launches, one, result, unknown};
use crate::call::{Arg, OpCall, Tensor};
use crate::kernel::{Concat, Kernel, Role, Slot};
use crate::memory_key::Place;
use crate::op_def::{Lowering, OpDef};
use crate::operands::{operand, output_bytes};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::cat"], lower)
        .outputs(|call| one(&joined(call)?, first(call)?.dtype))
        .backward(|_| Vec::new()),
    OpDef::leaf(&["aten::_chunk_cat"], lower).outputs(chunked),
    OpDef::leaf(&["aten::split_with_sizes_copy"], |call| split(call)),
    OpDef::composite(&["aten::stack"]).outputs(stacked).expand(stack).backward(|_| Vec::new()),
    OpDef::composite(&["aten::concat", "aten::concatenate", "aten::hstack", "aten::vstack", "aten::dstack"])
        .expand(alias),
];

/// Numbers of 8 bytes per tensor that a copy over a list first copies to the device: addresses, sizes, and the assignment of blocks of threads
/// to tensors. Their exact number depends on sizes, and is small in comparison.
pub const LISTED_NUMBERS: i64 = 16;

/// Maximum number of tensors per launch.
const BATCH: u64 = 128;

/// Returns the tensors with elements; those of shape `[0]` are skipped whatever the rank of the others.
fn parts<'c>(call: &BoundCall<'c>) -> impl Iterator<Item = (usize, &'c Tensor)> + use<'c> {
    call.tensors("tensors").iter().enumerate().filter(|(_, tensor)| tensor.numel() > 0)
}

fn first<'c>(call: &BoundCall<'c>) -> Option<&'c Tensor> {
    parts(call).map(|(_, tensor)| tensor).next().or_else(|| call.tensor("tensors"))
}

fn lower(call: &BoundCall<'_>) -> Option<Lowering> {
    // Long lists are missing in some recordings.
    if call.tensors("tensors").is_empty() { Some(unknown(call)) } else { cat(call) }
}

fn cat(call: &BoundCall<'_>) -> Option<Lowering> {
    let first = first(call)?;
    let rank = first.shape.len();
    let dim = axis(call.int("dim").unwrap_or(0), rank)?;
    let element = first.dtype.size();
    let row = |tensor: &Tensor| count(tensor.shape.get(dim..).unwrap_or(&[])) * element;
    let (mut total, mut least, mut most, mut inputs) = (0, u64::MAX, 0, 0);
    let (mut contiguous, mut aligned) = (true, true);
    for (_, tensor) in parts(call) {
        let bytes = row(tensor);
        total += bytes;
        least = least.min(bytes);
        most = most.max(bytes);
        inputs += 1;
        contiguous &= tensor.is_contiguous();
        aligned &= bytes % 16 == 0 && (tensor.offset * element).is_multiple_of(16);
    }
    if inputs == 0 {
        return Some(Lowering::Nothing);
    }
    let outer = count(first.shape.get(..dim)?);
    let kernel = Kernel::Concat(Concat {
        inputs,
        outer,
        row_bytes: total,
        least_bytes: least,
        most_bytes: most,
        contiguous,
        aligned,
    });
    let read = parts(call).map(|(at, tensor)| Some(operand(Slot::Input(0, at as u16), Role::Read, tensor)));
    let whole = result(call, 0, &joined(call)?, first.dtype);
    let operands: Vec<_> = read.chain([Some(whole)]).collect();
    Some(launches(inputs.div_ceil(BATCH) as u32, kernel, first.dtype, operands, 0))
}

/// Returns the launches of `(whole, sizes, dim, out)`: the inverse of a concatenation.
fn split(call: &OpCall) -> Option<Lowering> {
    let whole = call.tensor_at(0)?;
    let sizes = call.ints_at(1)?;
    let dim = axis(call.int_at(2).unwrap_or(0), whole.shape.len())?;
    let element = whole.dtype.size();
    let row = count(whole.shape.get(dim + 1..).unwrap_or(&[])).saturating_mul(element);
    let rows = || sizes.iter().map(|&size| u64::try_from(size).unwrap_or(0).saturating_mul(row));
    let kernel = Kernel::Concat(Concat {
        inputs: sizes.len() as u64,
        outer: count(whole.shape.get(..dim)?),
        row_bytes: rows().fold(0, u64::saturating_add),
        least_bytes: rows().min()?,
        most_bytes: rows().max()?,
        contiguous: whole.is_contiguous(),
        aligned: rows().all(|bytes| bytes % 16 == 0),
    });
    let operands = [operand(Slot::Input(0, 0), Role::Read, whole), output_bytes(0, whole.bytes())];
    Some(launches(1, kernel, whole.dtype, operands.map(Some), 0))
}

fn joined(call: &BoundCall<'_>) -> Option<Vec<i64>> {
    let first = first(call)?;
    let dim = axis(call.int("dim").unwrap_or(0), first.shape.len())?;
    let mut shape = first.shape.to_vec();
    *shape.get_mut(dim)? = parts(call).map(|(_, tensor)| tensor.size(dim as i64)).sum();
    Some(shape)
}

/// Returns the result of `(tensors, dim, chunks)`: each tensor is cut along a dimension into that number of chunks, the last one padded; the chunks
/// at one
/// position are concatenated, flattened.
fn chunked(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let first = first(call)?;
    let dim = axis(call.int_at(1).unwrap_or(0), first.shape.len())?;
    let chunks = call.int_at(2).filter(|&chunks| chunks > 0)?;
    let row = |tensor: &Tensor| {
        let size = *tensor.shape.get(dim)?;
        Some((size + chunks - 1) / chunks * count(&tensor.shape[dim + 1..]) as i64)
    };
    let rows: Option<i64> = parts(call).map(|(_, tensor)| row(tensor)).sum();
    let mut shape = first.shape.get(..dim)?.to_vec();
    shape.extend([chunks, rows?]);
    one(&shape, first.dtype)
}

fn stacked(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let first = call.tensor("tensors")?;
    let dim = axis(call.int("dim").unwrap_or(0), first.shape.len() + 1)?;
    let mut shape = first.shape.to_vec();
    shape.insert(dim, call.tensors("tensors").len() as i64);
    one(&shape, first.dtype)
}

/// Returns the calls of a stack: a concatenation, and a view of its result with one more dimension. Along a dimension after the last it concatenates
/// views.
fn stack(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(first) = call.tensor("tensors") else { return Vec::new() };
    let Some(dim) = axis(call.int("dim").unwrap_or(0), first.shape.len() + 1) else { return Vec::new() };
    if dim < first.shape.len() {
        let mut shape = first.shape.clone();
        shape[dim] *= call.tensors("tensors").len() as i64;
        let given = call.outputs.first().and_then(|given| given.tensors().first());
        let place = given.map_or(Place::UNKNOWN, |given| given.place);
        let joined = Tensor { device: first.device, place, ..Tensor::contiguous(&shape, first.dtype) };
        let inputs = vec![call.arg_or_none("tensors"), Arg::Int(dim as i64)];
        let joining =
            OpCall { outputs: vec![Arg::Tensor(joined.clone())], ..OpCall::new("aten::cat", inputs) };
        shape[dim] = first.shape[dim];
        shape.insert(dim, call.tensors("tensors").len() as i64);
        let viewed = vec![Arg::Tensor(joined), Arg::Ints(shape.iter().copied().collect())];
        let outputs =
            if call.outputs.is_empty() { stacked(call).unwrap_or_default() } else { call.outputs.clone() };
        return vec![joining, OpCall { outputs, ..OpCall::new("aten::view", viewed) }];
    }
    let widened = call.tensors("tensors").iter().map(|tensor| {
        let mut tensor = tensor.clone();
        tensor.shape.insert(dim, 1);
        tensor.strides.insert(dim, 1);
        tensor
    });
    let inputs = vec![Arg::Tensors(widened.collect()), Arg::Int(dim as i64)];
    vec![OpCall { outputs: call.outputs.clone(), ..OpCall::new("aten::cat", inputs) }]
}

fn alias(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(first) = call.tensor("tensors") else { return Vec::new() };
    let dim = match call.name.as_str() {
        "aten::hstack" => i64::from(first.shape.len() > 1),
        "aten::vstack" => 0,
        "aten::dstack" => 2,
        _ => call.int("dim").unwrap_or(0),
    };
    let inputs = vec![call.arg_or_none("tensors"), Arg::Int(dim)];
    vec![OpCall { outputs: call.outputs.clone(), ..OpCall::new("aten::cat", inputs) }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::dtype::Dtype::F32;

    fn list(shapes: &[&[i64]]) -> Arg {
        Arg::Tensors(shapes.iter().map(|shape| Tensor::contiguous(shape, F32)).collect())
    }

    #[test]
    fn rows_are_laid_side_by_side() {
        let call = OpCall::new("aten::cat", vec![list(&[&[2048, 64], &[0], &[2048, 36]]), Arg::Int(1)]);
        let Lowering::Kernel(kernel) = OpSet::standard().lower(&call) else { panic!("no kernel") };
        let Kernel::Concat(concat) = kernel.kernel else { panic!("another kernel") };
        assert_eq!((concat.inputs, concat.outer, concat.row_bytes), (2, 2048, 400));
        assert_eq!((concat.least_bytes, concat.most_bytes, concat.aligned), (144, 256, true));
        assert_eq!(kernel.operands.last().map(|o| o.bytes), Some(2048 * 400));
    }

    #[test]
    fn a_split_with_copies_is_one_kernel_over_all_parts() {
        let whole = Arg::Tensor(Tensor::contiguous(&[8, 80], F32));
        let sizes = Arg::Ints([64, 16][..].into());
        let inputs = vec![whole, sizes, Arg::Int(1), list(&[&[8, 64], &[8, 16]])];
        let call = OpCall::new("aten::split_with_sizes_copy", inputs);
        let Lowering::Kernel(kernel) = OpSet::standard().lower(&call) else { panic!("no kernel") };
        let Kernel::Concat(concat) = kernel.kernel else { panic!("another kernel") };
        assert_eq!((concat.inputs, concat.outer, concat.row_bytes), (2, 8, 320));
        assert_eq!((concat.least_bytes, concat.most_bytes, kernel.launches), (64, 256, 1));
        assert!(kernel.operands.iter().all(|operand| operand.bytes == 8 * 320));
    }

    #[test]
    fn chunks_of_a_list_follow_one_another_padded() {
        let call = |dim: i64, shapes: &[&[i64]]| {
            OpCall::new("aten::_chunk_cat", vec![list(shapes), Arg::Int(dim), Arg::Int(8)])
        };
        // In each chunk, eight rows of the first tensor and one number of the second.
        assert_eq!(OpSet::standard().outputs(&call(0, &[&[64, 3], &[5]])), one(&[8, 8 * 3 + 1], F32));
        assert_eq!(
            OpSet::standard().outputs(&call(1, &[&[4, 16], &[4, 9, 2]])),
            one(&[4, 8, 2 + 2 * 2], F32)
        );
    }

    #[test]
    fn a_stack_is_a_concatenation() {
        let call = OpCall::new("aten::stack", vec![list(&[&[512, 300], &[512, 300]]), Arg::Int(1)]);
        let [joined, viewed] = &OpSet::standard().expand(&call)[..] else { panic!("not two ops") };
        assert_eq!(OpSet::standard().outputs(joined), one(&[512, 600], F32));
        assert_eq!(viewed.outputs, one(&[512, 2, 300], F32).unwrap());
        let call = OpCall::new("aten::stack", vec![list(&[&[512], &[512]]), Arg::Int(1)]);
        let [joined] = &OpSet::standard().expand(&call)[..] else { panic!("not one op") };
        assert_eq!(OpSet::standard().outputs(joined), one(&[512, 2], F32));
    }
}
