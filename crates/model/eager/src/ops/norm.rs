//! Rows divided by their length: `torch.nn.functional.normalize`.

use steptime_aten::Dtype;

use crate::argument::{CUDA, Input, inputs};
use crate::eager::Eager;
use crate::ops::{arithmetic, fill, reduce};
use crate::recorder::code;
use crate::tensor::Tensor;

/// The rows of a matrix, normalized to length one.
pub(crate) fn normalize(e: &mut Eager, x: &Tensor) -> Tensor {
    let length = vector_norm(e, x);
    let least = clamp_min(e, &length);
    let wide = e.composite("aten::expand_as", inputs![&least, x], |e| reduce::expand(e, &least, &x.shape));
    divide(e, x, &wide)
}

fn vector_norm(e: &mut Eager, x: &Tensor) -> Tensor {
    let dims: &[i64] = &[1];
    let list = inputs![x, Input::Float(2.0), dims, Input::Bool(true), Input::None];
    let result = e.op("aten::linalg_vector_norm", list, |e| e.empty(&[x.size(0), 1], x.dtype));
    let (kept, length) = (x.clone(), result.clone());
    e.track(result, "LinalgVectorNormBackward0", &[x], move |e, grad, _| {
        let direction = arithmetic::quotient(e, &kept, &length);
        let zero = is_zero(e, &length);
        e.op("aten::masked_fill_.Scalar", inputs![&direction, &zero, Input::Int(0)], |e| {
            reduce::expand(e, &zero, &kept.shape);
            direction.clone()
        });
        vec![Some(arithmetic::product(e, grad, &direction))]
    })
}

fn is_zero(e: &mut Eager, x: &Tensor) -> Tensor {
    e.op("aten::eq.Scalar", inputs![x, Input::Int(0)], |e| e.empty(&x.shape, Dtype::Bool))
}

fn clamp_min(e: &mut Eager, x: &Tensor) -> Tensor {
    let least = Input::Float(1e-12);
    let result = e.op("aten::clamp_min", inputs![x, least], |e| e.like(x));
    let kept = x.clone();
    e.track(result, "ClampMinBackward0", &[x], move |e, grad, _| {
        let list = inputs![Input::Float(0.0), code(kept.dtype), Input::Int(0), CUDA, Input::None];
        let zero = e.op("aten::scalar_tensor", list, |e| {
            let zero = fill::empty(e, &[], kept.dtype, Input::None);
            fill::fill_(e, &zero, Input::Float(0.0));
            zero
        });
        let mask = e.op("aten::ge.Scalar", inputs![&kept, least], |e| e.empty(&kept.shape, Dtype::Bool));
        let result = e.op("aten::where.self", inputs![&mask, grad, &zero], |e| {
            fill::empty_then_resized(e, &kept.shape, kept.dtype)
        });
        vec![Some(result)]
    })
}

fn divide(e: &mut Eager, x: &Tensor, by: &Tensor) -> Tensor {
    let result = arithmetic::quotient(e, x, by);
    let (kept, wide) = (x.clone(), by.clone());
    e.track(result, "DivBackward0", &[x, by], move |e, grad, _| {
        let once = arithmetic::quotient(e, &kept, &wide);
        let twice = arithmetic::quotient(e, &once, &wide);
        let negative = arithmetic::neg(e, grad);
        let second = arithmetic::product(e, &negative, &twice);
        vec![Some(arithmetic::quotient(e, grad, &wide)), Some(second)]
    })
}
