//! Concatenation. The gradient of each part is a view of the whole's: no work.

use crate::axes::{axis, count};
use crate::call::{Arg, OpCall, Tensor};
use crate::kernel::{Concat, Kernel, Role, Slot};
use crate::operands::operand;
use crate::ops::{Lowered, OpDef};
use crate::work::{launches, one, or_bytes, result, unknown};

/// The ops of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::cat", "aten::_chunk_cat"], lower)
        .outputs(|call| one(&joined(call)?, first(call)?.dtype))
        .backward(|_| Vec::new()),
    OpDef::composite(&["aten::stack"]).outputs(stacked).expand(stack).backward(|_| Vec::new()),
    OpDef::composite(&["aten::concat", "aten::concatenate", "aten::hstack", "aten::vstack", "aten::dstack"])
        .expand(alias),
];

/// How many tensors one launch takes.
const BATCH: u64 = 128;

/// The tensors that have elements; those of shape `[0]` are skipped whatever the others' rank.
fn parts(call: &OpCall) -> impl Iterator<Item = (usize, &Tensor)> {
    call.tensors(0).iter().enumerate().filter(|(_, tensor)| tensor.numel() > 0)
}

fn first(call: &OpCall) -> Option<&Tensor> {
    parts(call).map(|(_, tensor)| tensor).next().or_else(|| call.tensor(0))
}

fn lower(call: &OpCall) -> Lowered {
    // Long lists are left out of some recordings.
    if call.tensors(0).is_empty() { unknown(call) } else { or_bytes(call, cat) }
}

fn cat(call: &OpCall) -> Option<Lowered> {
    let first = first(call)?;
    let rank = first.shape.len();
    let dim = axis(call.int(1).unwrap_or(0), rank)?;
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
        return Some(Lowered::Nothing);
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

fn joined(call: &OpCall) -> Option<Vec<i64>> {
    let first = first(call)?;
    let dim = axis(call.int(1).unwrap_or(0), first.shape.len())?;
    let mut shape = first.shape.to_vec();
    *shape.get_mut(dim)? = parts(call).map(|(_, tensor)| tensor.size(dim as i64)).sum();
    Some(shape)
}

fn stacked(call: &OpCall) -> Option<Vec<Arg>> {
    let first = call.tensor(0)?;
    let dim = axis(call.int(1).unwrap_or(0), first.shape.len() + 1)?;
    let mut shape = first.shape.to_vec();
    shape.insert(dim, call.tensors(0).len() as i64);
    one(&shape, first.dtype)
}

/// A stack concatenates views with one more dimension.
fn stack(call: &OpCall) -> Vec<OpCall> {
    let Some(dim) = call.tensor(0).and_then(|first| axis(call.int(1).unwrap_or(0), first.shape.len() + 1))
    else {
        return Vec::new();
    };
    let widened = call.tensors(0).iter().map(|tensor| {
        let mut tensor = tensor.clone();
        let stride = if dim == tensor.shape.len() { 1 } else { tensor.strides[dim] * tensor.shape[dim] };
        tensor.shape.insert(dim, 1);
        tensor.strides.insert(dim, stride);
        tensor
    });
    let inputs = vec![Arg::Tensors(widened.collect()), Arg::Int(dim as i64)];
    vec![OpCall { outputs: call.outputs.clone(), ..OpCall::new("aten::cat", inputs) }]
}

fn alias(call: &OpCall) -> Vec<OpCall> {
    let Some(first) = call.tensor(0) else { return Vec::new() };
    let dim = match call.name.as_str() {
        "aten::hstack" => i64::from(first.shape.len() > 1),
        "aten::vstack" => 0,
        "aten::dstack" => 2,
        _ => call.int(1).unwrap_or(0),
    };
    let inputs = vec![call.inputs[0].clone(), Arg::Int(dim)];
    vec![OpCall { outputs: call.outputs.clone(), ..OpCall::new("aten::cat", inputs) }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype::F32;

    fn list(shapes: &[&[i64]]) -> Arg {
        Arg::Tensors(shapes.iter().map(|shape| Tensor::contiguous(shape, F32)).collect())
    }

    #[test]
    fn rows_are_laid_side_by_side() {
        let call = OpCall::new("aten::cat", vec![list(&[&[2048, 64], &[0], &[2048, 36]]), Arg::Int(1)]);
        let Lowered::Kernel(kernel) = crate::registry::lower(&call) else { panic!("no kernel") };
        let Kernel::Concat(concat) = kernel.kernel else { panic!("another kernel") };
        assert_eq!((concat.inputs, concat.outer, concat.row_bytes), (2, 2048, 400));
        assert_eq!((concat.least_bytes, concat.most_bytes, concat.aligned), (144, 256, true));
        assert_eq!(kernel.operands.last().map(|o| o.bytes), Some(2048 * 400));
    }

    #[test]
    fn a_stack_is_a_concatenation() {
        let call = OpCall::new("aten::stack", vec![list(&[&[512, 300], &[512, 300]]), Arg::Int(1)]);
        let children = crate::registry::expand(&call);
        assert_eq!(joined(&children[0]), Some(vec![512, 2, 300]));
    }
}
