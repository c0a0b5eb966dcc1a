//! New tensors: empty, of zeros, of ones, of consecutive integers.

use steptime_aten::Dtype;

use crate::argument::{CUDA, Input, inputs};
use crate::eager::Eager;
use crate::recorder::code;
use crate::tensor::Tensor;

/// PyTorch's code for contiguous memory.
pub(crate) const CONTIGUOUS: Input<'static> = Input::Int(0);
/// PyTorch's code for the memory order of the argument.
pub(crate) const PRESERVE: Input<'static> = Input::Int(1);
/// PyTorch's code for the dense layout.
const STRIDED: Input<'static> = Input::Int(0);

pub(crate) fn empty(e: &mut Eager, shape: &[i64], dtype: Dtype, order: Input<'_>) -> Tensor {
    e.op("aten::empty.memory_format", inputs![shape, code(dtype), STRIDED, CUDA, Input::None, order], |e| {
        e.empty(shape, dtype)
    })
}

/// An empty tensor with the strides of another.
pub(crate) fn empty_strided(e: &mut Eager, like: &Tensor) -> Tensor {
    let list = inputs![&like.shape, &like.strides, code(like.dtype), STRIDED, CUDA, Input::None];
    e.op("aten::empty_strided", list, |e| e.like(like))
}

/// A tensor that is allocated once its size is known.
pub(crate) fn empty_then_resized(e: &mut Eager, shape: &[i64], dtype: Dtype) -> Tensor {
    let none = empty(e, &[0], dtype, Input::None);
    resized(e, &none, shape)
}

/// The same tensor with another size.
pub(crate) fn resized(e: &mut Eager, tensor: &Tensor, shape: &[i64]) -> Tensor {
    e.op("aten::resize_", inputs![tensor, shape, Input::None], |e| Tensor {
        id: tensor.id,
        ..e.empty(shape, tensor.dtype)
    })
}

/// An empty contiguous tensor with the shape of another.
pub(crate) fn empty_like(e: &mut Eager, like: &Tensor) -> Tensor {
    let list = inputs![like, Input::None, Input::None, Input::None, Input::None, CONTIGUOUS];
    e.op("aten::empty_like", list, |e| empty(e, &like.shape, like.dtype, CONTIGUOUS))
}

/// An empty tensor with the shape and memory order of another.
pub(crate) fn empty_like_ordered(e: &mut Eager, like: &Tensor) -> Tensor {
    let list = inputs![like, Input::None, Input::None, Input::None, Input::Bool(false), PRESERVE];
    e.op("aten::empty_like", list, |e| empty_strided(e, like))
}

/// Sets all elements.
pub(crate) fn fill_(e: &mut Eager, tensor: &Tensor, value: Input<'_>) {
    e.op("aten::fill_.Scalar", inputs![tensor, value], |_| tensor.clone());
}

/// Sets all elements to zero.
pub(crate) fn zero_(e: &mut Eager, tensor: &Tensor) {
    e.op("aten::zero_", inputs![tensor], |e| {
        fill_(e, tensor, Input::Int(0));
        tensor.clone()
    });
}

pub(crate) fn zeros(e: &mut Eager, shape: &[i64], dtype: Dtype) -> Tensor {
    e.op("aten::zeros", inputs![shape, code(dtype), STRIDED, CUDA, Input::None], |e| {
        let tensor = empty(e, shape, dtype, Input::None);
        zero_(e, &tensor);
        tensor
    })
}

/// Zeros with the shape of another tensor.
pub(crate) fn zeros_like(e: &mut Eager, like: &Tensor) -> Tensor {
    let none = Input::None;
    e.op("aten::zeros_like", inputs![like, none, none, none, none, CONTIGUOUS], |e| {
        let list = inputs![like, code(like.dtype), STRIDED, CUDA, none, CONTIGUOUS];
        let tensor = e.op("aten::empty_like", list, |e| empty(e, &like.shape, like.dtype, CONTIGUOUS));
        zero_(e, &tensor);
        tensor
    })
}

/// An empty tensor of another shape, with the type of a tensor.
pub(crate) fn new_empty(e: &mut Eager, of: &Tensor, shape: &[i64]) -> Tensor {
    let list = inputs![of, shape, code(of.dtype), STRIDED, CUDA, Input::None];
    e.op("aten::new_empty", list, |e| empty(e, shape, of.dtype, Input::None))
}

/// Zeros of another shape, with the type of a tensor.
pub(crate) fn new_zeros(e: &mut Eager, of: &Tensor, shape: &[i64]) -> Tensor {
    let list = inputs![of, shape, code(of.dtype), STRIDED, CUDA, Input::None];
    e.op("aten::new_zeros", list, |e| {
        let tensor = new_empty(e, of, shape);
        zero_(e, &tensor);
        tensor
    })
}

/// Ones with the shape of another tensor.
pub(crate) fn ones_like(e: &mut Eager, like: &Tensor) -> Tensor {
    let list = inputs![like, Input::None, Input::None, Input::None, Input::Bool(false), PRESERVE];
    e.op("aten::ones_like", list, |e| {
        let tensor = empty_like_ordered(e, like);
        fill_(e, &tensor, Input::Float(1.0));
        tensor
    })
}

/// The integers from 0 to `end - 1`.
pub(crate) fn arange(e: &mut Eager, end: i64) -> Tensor {
    e.op("aten::arange", inputs![end, code(Dtype::I64), STRIDED, CUDA, Input::None], |e| {
        let none = empty(e, &[0], Dtype::I64, Input::None);
        let list = inputs![Input::Int(0), end, Input::Int(1), &none];
        e.op("aten::arange.start_out", list, |e| resized(e, &none, &[end]))
    })
}
