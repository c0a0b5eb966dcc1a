//! Sparse gradients of tables.

use std::rc::Rc;

use steptime_aten::Dtype;

use crate::argument::{CUDA, Input, inputs};
use crate::eager::Eager;
use crate::ops::fill;
use crate::recorder::code;
use crate::tensor::Tensor;

/// PyTorch's code for the sparse layout.
const SPARSE: Input<'static> = Input::Int(1);

/// A sparse tensor of indices `[1, n]` and values `[n, columns]`, which it owns from then on.
fn with_parts(e: &mut Eager, parts: &[Tensor; 2], shape: &[i64]) -> Tensor {
    let [indices, values] = parts;
    let (dims, none) = (Input::Int(1), Input::None);
    let list = inputs![dims, dims, shape, indices, values, code(values.dtype), SPARSE, CUDA, none, none];
    e.op("aten::_sparse_coo_tensor_with_dims_and_tensors", list, |e| {
        let first = fill::empty(e, &[0], values.dtype, none);
        let second = fill::empty(e, &[1, 0], Dtype::I64, none);
        fill::resized(e, &first, &[0, shape[1]]);
        fill::resized(e, &second, &[1, 0]);
        let whole = e.unallocated(shape, values.dtype);
        Tensor { sparse: Some(Rc::new(parts.clone())), ..whole }
    })
}

/// A sparse tensor; `told` is set where the type is passed explicitly.
pub(crate) fn coo(e: &mut Eager, indices: Tensor, values: Tensor, shape: &[i64], told: bool) -> Tensor {
    let none = Input::None;
    let [dtype, layout, device] = if told { [code(values.dtype), SPARSE, CUDA] } else { [none; 3] };
    let list = inputs![&indices, &values, shape, dtype, layout, device, none, none];
    let parts = [indices.clone(), values.clone()];
    e.op("aten::_sparse_coo_tensor_unsafe", list, |e| with_parts(e, &parts, shape))
}

/// The indices of a sparse tensor.
pub(crate) fn indices(e: &mut Eager, x: &Tensor) -> Tensor {
    part(e, "aten::_indices", x, 0)
}

/// The values of a sparse tensor.
pub(crate) fn values(e: &mut Eager, x: &Tensor) -> Tensor {
    part(e, "aten::_values", x, 1)
}

fn part(e: &mut Eager, op: &str, x: &Tensor, at: usize) -> Tensor {
    e.op(op, inputs![x], |e| match &x.sparse {
        Some(parts) => e.view(&parts[at], &parts[at].shape, &parts[at].strides, parts[at].offset),
        None => x.clone(),
    })
}

/// Another sparse tensor with the same parts: the stored gradient of a parameter.
pub(crate) fn share(e: &mut Eager, grad: &Tensor) -> Tensor {
    for _ in 0..2 {
        indices(e, grad);
        values(e, grad);
    }
    let values = values(e, grad);
    let indices = indices(e, grad);
    coo(e, indices, values, &grad.shape, true)
}
