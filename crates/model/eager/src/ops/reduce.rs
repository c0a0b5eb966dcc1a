//! Sums over dimensions, and expanded dimensions: each is the gradient of the other.

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::ops::views;
use crate::tensor::Tensor;

/// The sum over a dimension, which is kept with size one or removed.
pub(crate) fn sum(e: &mut Eager, x: &Tensor, dim: usize, kept: bool) -> Tensor {
    let result = summed(e, x, &[dim as i64], kept);
    let shape = x.shape.clone();
    e.track(result, "SumBackward1", &[x], move |e, grad, _| {
        let whole = if kept { grad.clone() } else { views::unsqueeze(e, grad, dim) };
        vec![Some(expand(e, &whole, &shape))]
    })
}

fn summed(e: &mut Eager, x: &Tensor, dims: &[i64], kept: bool) -> Tensor {
    let all = x.shape.iter().enumerate();
    let shape: Vec<i64> = all
        .filter_map(|(dim, &size)| match dims.contains(&(dim as i64)) {
            true => kept.then_some(1),
            false => Some(size),
        })
        .collect();
    e.op("aten::sum.dim_IntList", inputs![x, dims, kept, Input::None], |e| e.empty(&shape, x.dtype))
}

/// Expands dimensions of size one.
pub(crate) fn expand(e: &mut Eager, x: &Tensor, shape: &[i64]) -> Tensor {
    let added = shape.len() - x.shape.len();
    let strides: Vec<i64> = (0..shape.len())
        .map(|dim| match dim.checked_sub(added) {
            Some(own) if x.shape[own] == shape[dim] => x.strides[own],
            _ => 0,
        })
        .collect();
    let result =
        e.op("aten::expand", inputs![x, shape, false], |e| views::as_strided(e, x, shape, &strides, None));
    let before = x.shape.clone();
    e.track(result, "ExpandBackward0", &[x], move |e, grad, _| vec![Some(to_shape(e, grad.clone(), &before))])
}

/// Sums a gradient over the dimensions along which its tensor was expanded.
pub(crate) fn to_shape(e: &mut Eager, grad: Tensor, shape: &[i64]) -> Tensor {
    if grad.shape == shape {
        return grad;
    }
    let leading = grad.shape.len() - shape.len();
    let repeated = |dim: usize| dim < leading || (shape[dim - leading] == 1 && grad.shape[dim] != 1);
    let dims: Vec<i64> = (0..grad.shape.len()).filter(|&dim| repeated(dim)).map(|dim| dim as i64).collect();
    let sum = summed(e, &grad, &dims, true);
    if leading == 0 { sum } else { views::view(e, &sum, shape) }
}
