//! Elementwise arithmetic.

use steptime_aten::Dtype;

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::role::Role;
use crate::tensor::Tensor;

const ONE: Input<'static> = Input::Int(1);

/// Adds one tensor to another in place.
pub(crate) fn add_into(e: &mut Eager, to: &Tensor, x: &Tensor) -> Tensor {
    e.op("aten::add_.Tensor", inputs![to, x, ONE], |_| to.clone())
}

/// A sum, without gradient.
pub(crate) fn sum_of(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    e.op("aten::add.Tensor", inputs![a, b, ONE], |e| e.empty(&a.shape, a.dtype))
}

/// A sum of two tensors of one shape.
pub(crate) fn add(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    let result = sum_of(e, a, b);
    e.track(result, "AddBackward0", &[a, b], |_, grad, needed| {
        needed.iter().map(|&needed| needed.then(|| grad.clone())).collect()
    })
}

pub(crate) fn sub(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    let result = e.op("aten::sub.Tensor", inputs![a, b, ONE], |e| e.empty(&a.shape, a.dtype));
    e.track(result, "SubBackward0", &[a, b], |e, grad, needed| {
        let second = needed[1].then(|| neg(e, grad));
        vec![needed[0].then(|| grad.clone()), second]
    })
}

/// An elementwise product.
pub(crate) fn mul(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    let result = product(e, a, b);
    let (left, right) = (a.clone(), b.clone());
    e.track(result, "MulBackward0", &[a, b], move |e, grad, needed| {
        let first = needed[0].then(|| product(e, grad, &right));
        vec![first, needed[1].then(|| product(e, grad, &left))]
    })
}

/// An elementwise product, without gradient.
pub(crate) fn product(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    let shape = if a.numel() >= b.numel() { &a.shape } else { &b.shape };
    e.op("aten::mul.Tensor", inputs![a, b], |e| e.empty(shape, a.dtype))
}

/// An elementwise quotient, without gradient.
pub(crate) fn quotient(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    e.op("aten::div.Tensor", inputs![a, b], |e| e.empty(&a.shape, a.dtype))
}

pub(crate) fn neg(e: &mut Eager, x: &Tensor) -> Tensor {
    e.op("aten::neg", inputs![x], |e| e.like(x))
}

/// A number as a tensor in host memory.
fn number(e: &mut Eager, value: f64) -> Tensor {
    let number = e.host(&[], Dtype::F64);
    e.name(&number, "number", Role::Number(value));
    number
}

/// Product with a number, which Python passes as a tensor.
pub(crate) fn scale(e: &mut Eager, x: &Tensor, by: f64) -> Tensor {
    let factor = number(e, by);
    let result = product(e, x, &factor);
    e.track(result, "MulBackward0", &[x], move |e, grad, _| vec![Some(product(e, grad, &factor))])
}

/// Quotient by a number.
pub(crate) fn divide(e: &mut Eager, x: &Tensor, by: f64) -> Tensor {
    let by = number(e, by);
    let result = quotient(e, x, &by);
    e.track(result, "DivBackward0", &[x], move |e, grad, _| vec![Some(quotient(e, grad, &by))])
}
