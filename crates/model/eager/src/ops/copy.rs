//! Copies, also from host memory.

use crate::argument::{CUDA, Input, inputs};
use crate::eager::Eager;
use crate::recorder::code;
use crate::tensor::Tensor;

pub(crate) fn copy_(e: &mut Eager, to: &Tensor, from: &Tensor) {
    e.op("aten::copy_", inputs![to, from, false], |_| to.clone());
}

/// Copies elements between device and pinned host memory; the host does not wait.
pub(crate) fn fetch_(e: &mut Eager, to: &Tensor, from: &Tensor) {
    e.op("aten::copy_", inputs![to, from, true], |_| to.clone());
}

/// Copies an input of the step to the device: `x.to("cuda")`.
pub(crate) fn to_device(e: &mut Eager, x: &Tensor) -> Tensor {
    let (dtype, layout, none) = (code(x.dtype), Input::Int(0), Input::None);
    let list = inputs![x, dtype, layout, Input::Device("cuda"), none, false, false, none];
    e.composite("aten::to.dtype_layout", list, |e| {
        e.op("aten::_to_copy", inputs![x, dtype, layout, CUDA, none, false, none], |e| {
            let list = inputs![&x.shape, &x.strides, dtype, layout, CUDA, false];
            let result = e.op("aten::empty_strided", list, |e| e.empty(&x.shape, x.dtype));
            copy_(e, &result, x);
            result
        })
    })
}

/// Converts a tensor to its own type, which does nothing.
pub(crate) fn to_same(e: &mut Eager, x: &Tensor) {
    e.composite("aten::to.dtype", inputs![x, code(x.dtype), false, false, Input::None], |_| x.clone());
}

/// Moves a tensor to its own device, which does nothing.
pub(crate) fn to_here(e: &mut Eager, x: &Tensor) {
    let none = Input::None;
    e.composite("aten::to.dtype_layout", inputs![x, none, none, CUDA, none, false, false, none], |_| {
        x.clone()
    });
}
