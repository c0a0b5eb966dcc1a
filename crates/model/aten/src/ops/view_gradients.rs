//! Views whose gradients are no views: parts of a tensor, and repetitions of it.

use crate::call::{Arg, OpCall, Tensor};
use crate::child::{child, ints};
use crate::ops::OpDef;

/// Views.
pub static OPS: &[OpDef] = &[
    OpDef::nothing(&["aten::select"]).backward(|call| {
        let kept = |tensor: &Tensor, dim: usize| without(tensor, dim);
        part(call, "aten::select_backward", kept, 2)
    }),
    OpDef::nothing(&["aten::slice"]).backward(|call| {
        let kept = |tensor: &Tensor, dim: usize| {
            let size = tensor.shape[dim];
            let at = |bound: i64| if bound < 0 { bound + size } else { bound }.clamp(0, size);
            let (start, end) = (at(call.int(2).unwrap_or(0)), at(call.int(3).unwrap_or(size)));
            let step = call.int(4).unwrap_or(1).max(1);
            resized(tensor, dim, ((end - start).max(0) + step - 1) / step)
        };
        part(call, "aten::slice_backward", kept, 4)
    }),
    OpDef::nothing(&["aten::narrow"]).backward(|call| {
        let bounds = call.int(2).zip(call.int(3)).map(|(start, length)| [start, start + length]);
        let Some([start, end]) = bounds else { return Vec::new() };
        let given = call.inputs.iter().take(2).cloned();
        let slice = child(call, "aten::slice", given.chain([start, end, 1].map(Arg::Int)).collect());
        crate::backward::backward(&slice)
    }),
    OpDef::nothing(&["aten::expand", "aten::expand_as"]).backward(expanded),
    OpDef::nothing(&["aten::split", "aten::split_with_sizes", "aten::chunk", "aten::unsafe_split"]).backward(
        |call| {
            let parts = call.outputs.first().map(|all| all.tensors().iter().map(plain).collect::<Vec<_>>());
            joined(call, "aten::cat", parts, call.int(2).unwrap_or(0))
        },
    ),
    OpDef::nothing(&["aten::unbind"]).backward(|call| {
        let dim = call.int(1).unwrap_or(0);
        let parts = call.tensor(0).and_then(|tensor| {
            let at = axis(tensor, dim)?;
            let count = usize::try_from(tensor.shape[at]).ok()?;
            Some(vec![without(tensor, at); count])
        });
        joined(call, "aten::stack", parts, dim)
    }),
];

fn axis(tensor: &Tensor, dim: i64) -> Option<usize> {
    crate::axes::axis(dim, tensor.shape.len()).filter(|&at| at < tensor.shape.len())
}

fn plain(tensor: &Tensor) -> Tensor {
    Tensor::contiguous(&tensor.shape, tensor.dtype)
}

fn without(tensor: &Tensor, dim: usize) -> Tensor {
    let mut shape = tensor.shape.to_vec();
    shape.remove(dim);
    Tensor::contiguous(&shape, tensor.dtype)
}

fn resized(tensor: &Tensor, dim: usize, size: i64) -> Tensor {
    let mut shape = tensor.shape.to_vec();
    shape[dim] = size;
    Tensor::contiguous(&shape, tensor.dtype)
}

/// The gradient of a part is put into zeros; takes (gradient, sizes, dim, ...).
fn part(call: &OpCall, name: &str, kept: impl Fn(&Tensor, usize) -> Tensor, last: usize) -> Vec<OpCall> {
    let Some(tensor) = call.tensor(0) else { return Vec::new() };
    let Some(dim) = axis(tensor, call.int(1).unwrap_or(0)) else { return Vec::new() };
    let sizes = ints(&tensor.shape);
    let rest = (2..=last).map(|arg| call.inputs.get(arg).cloned().unwrap_or(Arg::Int(1)));
    let first = [Arg::Tensor(kept(tensor, dim)), sizes, Arg::Int(dim as i64)];
    vec![child(call, name, first.into_iter().chain(rest).collect())]
}

/// The gradient is summed where the tensor was repeated.
fn expanded(call: &OpCall) -> Vec<OpCall> {
    let Some(tensor) = call.tensor(0) else { return Vec::new() };
    let sizes = match call.tensor(1) {
        Some(other) => other.shape.to_vec(),
        None => call.ints(1).unwrap_or_default().to_vec(),
    };
    let Some(added) = sizes.len().checked_sub(tensor.shape.len()) else { return Vec::new() };
    let own = |dim: usize| dim.checked_sub(added).map_or(1, |at| tensor.shape[at]);
    let full: Vec<i64> =
        sizes.iter().enumerate().map(|(dim, &size)| if size < 0 { own(dim) } else { size }).collect();
    let dims: Vec<i64> =
        (0..full.len()).filter(|&dim| full[dim] != 1 && own(dim) == 1).map(|dim| dim as i64).collect();
    if dims.is_empty() {
        return Vec::new();
    }
    let grad = Arg::Tensor(Tensor::contiguous(&full, tensor.dtype));
    vec![child(call, "aten::sum", vec![grad, ints(&dims), Arg::Bool(true), Arg::None])]
}

/// The gradients of parts are put together.
fn joined(call: &OpCall, name: &str, parts: Option<Vec<Tensor>>, dim: i64) -> Vec<OpCall> {
    let parts = parts.filter(|parts| !parts.is_empty());
    parts.map(|parts| child(call, name, vec![Arg::Tensors(parts), Arg::Int(dim)])).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::backward::backward;
    use crate::child::fresh;

    #[test]
    fn a_part_is_put_into_zeros() {
        let inputs = vec![fresh(&[8, 6], F32), Arg::Int(1), Arg::Int(2), Arg::Int(-1), Arg::Int(1)];
        let all = backward(&OpCall::new("aten::slice", inputs));
        let shape = all[0].tensor(0).map(|grad| grad.shape.to_vec());
        assert_eq!((all[0].name.as_str(), shape), ("aten::slice_backward", Some(vec![8, 3])));
        let inputs = vec![fresh(&[8, 6], F32), Arg::Int(0), Arg::Int(2)];
        let all = backward(&OpCall::new("aten::select", inputs));
        assert_eq!((all[0].ints(1), all[0].int(3)), (Some([8, 6].as_slice().into()), Some(2)));
    }

    #[test]
    fn repetitions_are_summed() {
        let all = backward(&OpCall::new("aten::expand", vec![fresh(&[1, 6], F32), ints(&[8, -1])]));
        assert_eq!((all[0].name.as_str(), all[0].ints(1)), ("aten::sum", Some([0].as_slice().into())));
        assert!(backward(&OpCall::new("aten::expand", vec![fresh(&[6], F32), ints(&[6])])).is_empty());
    }

    #[test]
    fn slices_are_stacked() {
        let all = backward(&OpCall::new("aten::unbind", vec![fresh(&[3, 5], F32), Arg::Int(0)]));
        assert_eq!((all[0].name.as_str(), all[0].tensors(0).len()), ("aten::stack", 3));
    }
}
