//! Views whose gradients are not views: parts of a tensor, and repetitions of it.

use crate::bound_call::BoundCall;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, ints};
use crate::op_def::OpDef;

/// Definitions of views.
pub static OPS: &[OpDef] = &[
    OpDef::nothing(&["aten::select"]).backward(|call| {
        let kept = |tensor: &Tensor, dim: usize| without(tensor, dim);
        let index = call.arg("index").cloned().unwrap_or(Arg::Int(1));
        part(call, "aten::select_backward", kept, [index])
    }),
    OpDef::nothing(&["aten::slice"]).backward(|call| {
        let bounds = ["start", "end", "step"].map(|name| call.arg(name).cloned().unwrap_or(Arg::Int(1)));
        sliced(call, [call.int("start"), call.int("end"), call.int("step")], bounds)
    }),
    OpDef::nothing(&["aten::narrow"]).backward(|call| {
        let bounds = call.int("start").zip(call.int("length")).map(|(start, length)| [start, start + length]);
        let Some([start, end]) = bounds else { return Vec::new() };
        sliced(call, [start, end, 1].map(Some), [start, end, 1].map(Arg::Int))
    }),
    OpDef::nothing(&["aten::expand", "aten::expand_as"]).backward(expanded),
    OpDef::nothing(&["aten::split", "aten::split_with_sizes", "aten::chunk", "aten::unsafe_split"]).backward(
        |call| {
            let parts = call.outputs.first().map(|all| all.tensors().iter().map(plain).collect::<Vec<_>>());
            joined(call, "aten::cat", parts, call.int("dim").unwrap_or(0))
        },
    ),
    OpDef::nothing(&["aten::unbind"]).backward(|call| {
        let dim = call.int("dim").unwrap_or(0);
        let parts = call.tensor("self").and_then(|tensor| {
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

/// Returns the gradient of a slice from start to end with a step.
fn sliced(call: &BoundCall<'_>, [start, end, step]: [Option<i64>; 3], bounds: [Arg; 3]) -> Vec<OpCall> {
    let kept = |tensor: &Tensor, dim: usize| {
        let size = tensor.shape[dim];
        let at = |bound: i64| if bound < 0 { bound + size } else { bound }.clamp(0, size);
        let (start, end) = (at(start.unwrap_or(0)), at(end.unwrap_or(size)));
        let step = step.unwrap_or(1).max(1);
        resized(tensor, dim, ((end - start).max(0) + step - 1) / step)
    };
    part(call, "aten::slice_backward", kept, bounds)
}

/// Returns the gradient of a part, which is copied into zeros; takes (gradient, sizes, dim, ...).
fn part<const N: usize>(
    call: &BoundCall<'_>,
    name: &str,
    kept: impl Fn(&Tensor, usize) -> Tensor,
    rest: [Arg; N],
) -> Vec<OpCall> {
    let Some(tensor) = call.tensor("self") else { return Vec::new() };
    let Some(dim) = axis(tensor, call.int("dim").unwrap_or(0)) else { return Vec::new() };
    let sizes = ints(&tensor.shape);
    let first = [Arg::Tensor(kept(tensor, dim)), sizes, Arg::Int(dim as i64)];
    vec![child(call, name, first.into_iter().chain(rest).collect())]
}

/// Returns the gradient of an expansion: a sum over the repeated dimensions.
fn expanded(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(tensor) = call.tensor("self") else { return Vec::new() };
    let sizes = if call.has("other") {
        call.tensor("other").map(|other| other.shape.to_vec()).unwrap_or_default()
    } else {
        call.ints("size").unwrap_or_default().to_vec()
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

/// Returns the gradient of parts: a concatenation or stack of their gradients.
fn joined(call: &BoundCall<'_>, name: &str, parts: Option<Vec<Tensor>>, dim: i64) -> Vec<OpCall> {
    let parts = parts.filter(|parts| !parts.is_empty());
    parts.map(|parts| child(call, name, vec![Arg::Tensors(parts), Arg::Int(dim)])).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::child_calls::fresh;

    #[test]
    fn a_part_is_put_into_zeros() {
        let inputs = vec![fresh(&[8, 6], F32), Arg::Int(1), Arg::Int(2), Arg::Int(-1), Arg::Int(1)];
        let all = OpSet::standard().backward(&OpCall::new("aten::slice", inputs));
        let shape = all[0].tensor_at(0).map(|grad| grad.shape.to_vec());
        assert_eq!((all[0].name.as_str(), shape), ("aten::slice_backward", Some(vec![8, 3])));
        let inputs = vec![fresh(&[8, 6], F32), Arg::Int(0), Arg::Int(2)];
        let all = OpSet::standard().backward(&OpCall::new("aten::select", inputs));
        assert_eq!((all[0].ints_at(1), all[0].int_at(3)), (Some([8, 6].as_slice().into()), Some(2)));
    }

    #[test]
    fn repetitions_are_summed() {
        let all = OpSet::standard()
            .backward(&OpCall::new("aten::expand", vec![fresh(&[1, 6], F32), ints(&[8, -1])]));
        assert_eq!((all[0].name.as_str(), all[0].ints_at(1)), ("aten::sum", Some([0].as_slice().into())));
        assert!(
            OpSet::standard()
                .backward(&OpCall::new("aten::expand", vec![fresh(&[6], F32), ints(&[6])]))
                .is_empty()
        );
    }

    #[test]
    fn slices_are_stacked() {
        let all =
            OpSet::standard().backward(&OpCall::new("aten::unbind", vec![fresh(&[3, 5], F32), Arg::Int(0)]));
        assert_eq!((all[0].name.as_str(), all[0].tensors_at(0).len()), ("aten::stack", 3));
    }
}
