//! Activations.

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::tensor::Tensor;

pub(crate) fn relu(e: &mut Eager, x: &Tensor) -> Tensor {
    let result =
        e.op("aten::relu", inputs![x], |e| e.op("aten::clamp_min", inputs![x, Input::Int(0)], |e| e.like(x)));
    let kept = result.clone();
    e.track(result, "ReluBackward0", &[x], move |e, grad, _| {
        let list = inputs![grad, &kept, Input::Int(0)];
        vec![Some(e.op("aten::threshold_backward", list, |e| e.like(&kept)))]
    })
}

/// Logistic function.
pub(crate) fn sigmoid(e: &mut Eager, x: &Tensor) -> Tensor {
    let result = e.op("aten::sigmoid", inputs![x], |e| e.like(x));
    let kept = result.clone();
    e.track(result, "SigmoidBackward0", &[x], move |e, grad, _| {
        vec![Some(e.op("aten::sigmoid_backward", inputs![grad, &kept], |e| e.like(&kept)))]
    })
}
