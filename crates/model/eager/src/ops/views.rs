//! Views: another shape or memory order on the same memory.

use crate::argument::{CUDA, Input, inputs};
use crate::eager::Eager;
use crate::ops::{copy, fill};
use crate::recorder::code;
use crate::tensor::{Tensor, contiguous};

/// A view by strides.
pub(crate) fn as_strided(
    e: &mut Eager,
    x: &Tensor,
    shape: &[i64],
    strides: &[i64],
    offset: Option<i64>,
) -> Tensor {
    let given = offset.map_or(Input::None, Input::Int);
    e.op("aten::as_strided", inputs![x, shape, strides, given], |e| {
        e.view(x, shape, strides, offset.unwrap_or(x.offset))
    })
}

/// A view with two dimensions swapped.
pub(crate) fn transpose(e: &mut Eager, x: &Tensor, a: usize, b: usize) -> Tensor {
    let result = transposed(e, x, a, b);
    e.track(result, "TransposeBackward0", &[x], move |e, grad, _| vec![Some(transpose(e, grad, a, b))])
}

fn transposed(e: &mut Eager, x: &Tensor, a: usize, b: usize) -> Tensor {
    let (mut shape, mut strides) = (x.shape.clone(), x.strides.clone());
    shape.swap(a, b);
    strides.swap(a, b);
    e.op("aten::transpose.int", inputs![x, a as i64, b as i64], |e| as_strided(e, x, &shape, &strides, None))
}

/// A transposed matrix.
pub(crate) fn t(e: &mut Eager, x: &Tensor) -> Tensor {
    let result = e.op("aten::t", inputs![x], |e| transposed(e, x, 0, 1));
    e.track(result, "TBackward0", &[x], |e, grad, _| vec![Some(t(e, grad))])
}

/// A contiguous tensor in another shape. `asked` is the caller's argument, in which one size may be -1.
pub(crate) fn view(e: &mut Eager, x: &Tensor, asked: &[i64]) -> Tensor {
    let result = viewed(e, x, asked);
    let shape = x.shape.clone();
    e.track(result, "ViewBackward0", &[x], move |e, grad, _| vec![Some(reshape(e, grad, &shape))])
}

fn viewed(e: &mut Eager, x: &Tensor, asked: &[i64]) -> Tensor {
    let known: i64 = asked.iter().filter(|&&size| size >= 0).product();
    let open = x.numel() / known.max(1);
    let shape: Vec<i64> = asked.iter().map(|&size| if size < 0 { open } else { size }).collect();
    let strides = if x.is_contiguous() || x.shape.len() != 1 {
        contiguous(&shape)
    } else {
        shape.iter().map(|_| x.strides[0]).collect()
    };
    e.op("aten::view", inputs![x, asked], |e| e.view(x, &shape, &strides, x.offset))
}

/// A tensor in another shape; one that is not contiguous is copied.
pub(crate) fn reshape(e: &mut Eager, x: &Tensor, asked: &[i64]) -> Tensor {
    e.composite("aten::reshape", inputs![x, asked], |e| {
        let whole = if x.is_contiguous() { x.clone() } else { clone_as(e, x, Input::Int(0)) };
        viewed(e, &whole, asked)
    })
}

/// A view with a new dimension of size one.
pub(crate) fn unsqueeze(e: &mut Eager, x: &Tensor, dim: usize) -> Tensor {
    let (mut shape, mut strides) = (x.shape.clone(), x.strides.clone());
    let stride = if dim < shape.len() { shape[dim] * strides[dim] } else { 1 };
    shape.insert(dim, 1);
    strides.insert(dim, stride);
    e.op("aten::unsqueeze", inputs![x, dim as i64], |e| as_strided(e, x, &shape, &strides, None))
}

/// Some columns, as in the gradient of a concatenation.
pub(crate) fn narrow(e: &mut Eager, x: &Tensor, start: i64, length: i64) -> Tensor {
    narrowed(e, x, 1, start, length)
}

/// Some elements of a flat tensor.
pub(crate) fn narrow_rows(e: &mut Eager, x: &Tensor, start: i64, length: i64) -> Tensor {
    narrowed(e, x, 0, start, length)
}

fn narrowed(e: &mut Eager, x: &Tensor, dim: usize, start: i64, length: i64) -> Tensor {
    let mut shape = x.shape.clone();
    shape[dim] = length;
    e.composite("aten::narrow", inputs![x, dim as i64, start, length], |e| {
        let list = inputs![x, dim as i64, start, start + length, Input::Int(1)];
        e.op("aten::slice.Tensor", list, |e| {
            as_strided(e, x, &shape, &x.strides, Some(x.offset + start * x.strides[dim]))
        })
    })
}

/// Concatenates columns.
pub(crate) fn cat(e: &mut Eager, parts: &[Tensor]) -> Tensor {
    let widths: Vec<i64> = parts.iter().map(|part| part.size(1)).collect();
    let result = joined(e, parts, 1);
    let arguments: Vec<&Tensor> = parts.iter().collect();
    e.track(result, "CatBackward0", &arguments, move |e, grad, _| {
        let mut start = 0;
        let mut parts = Vec::with_capacity(widths.len());
        for &width in &widths {
            parts.push(Some(narrow(e, grad, start, width)));
            start += width;
        }
        parts
    })
}

/// Splits a tensor along a dimension into views of these sizes.
pub(crate) fn split(e: &mut Eager, x: &Tensor, sizes: &[i64], dim: usize) -> Vec<Tensor> {
    let parts = e.op("aten::split_with_sizes", inputs![x, sizes, dim as i64], |e| {
        let mut start = x.offset;
        let mut parts = Vec::with_capacity(sizes.len());
        for &size in sizes {
            let mut shape = x.shape.clone();
            shape[dim] = size;
            parts.push(as_strided(e, x, &shape, &x.strides, Some(start)));
            start += size * x.strides[dim];
        }
        parts
    });
    e.track_all(parts, "SplitWithSizesBackward0", x, move |e, grads| joined(e, grads, dim))
}

/// Concatenates tensors along a dimension.
pub(crate) fn joined(e: &mut Eager, parts: &[Tensor], dim: usize) -> Tensor {
    let mut shape = parts[0].shape.clone();
    shape[dim] = parts.iter().map(|part| part.size(dim)).sum();
    e.op("aten::cat", inputs![parts, dim as i64], |e| e.empty(&shape, parts[0].dtype))
}

/// A copy, contiguous or in the same memory order.
pub(crate) fn clone_as(e: &mut Eager, x: &Tensor, order: Input<'_>) -> Tensor {
    e.op("aten::clone", inputs![x, order], |e| {
        let list = inputs![x, code(x.dtype), Input::Int(0), CUDA, Input::None, fill::CONTIGUOUS];
        let result = e.op("aten::empty_like", list, |e| fill::empty(e, &x.shape, x.dtype, fill::CONTIGUOUS));
        copy::copy_(e, &result, x);
        result
    })
}

/// The tensor itself where it is contiguous, else a contiguous copy.
pub(crate) fn contiguous_of(e: &mut Eager, x: &Tensor) -> Tensor {
    if x.is_contiguous() {
        return x.clone();
    }
    e.composite("aten::contiguous", inputs![x, fill::CONTIGUOUS], |e| clone_as(e, x, fill::CONTIGUOUS))
}
