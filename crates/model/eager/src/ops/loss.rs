//! Losses: one number per batch.

use steptime_aten::Dtype;

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::ops::{copy, fill, views};
use crate::recorder::code;
use crate::tensor::Tensor;

/// PyTorch's code for the mean of all losses.
const MEAN: Input<'static> = Input::Int(1);

/// The mean of squared differences.
pub(crate) fn mse(e: &mut Eager, x: &Tensor, target: &Tensor) -> Tensor {
    let both = vec![x.clone(), target.clone()];
    e.composite("aten::broadcast_tensors", inputs![&both], |_| both.clone());
    let result = e.op("aten::mse_loss", inputs![x, target, MEAN], |e| {
        let early = e.empty(&x.shape, x.dtype);
        let result = fill::resized(e, &early, &[]);
        drop(early);
        let each = fill::empty(e, &x.shape, x.dtype, fill::CONTIGUOUS);
        let none: &[i64] = &[];
        e.op("aten::mean.out", inputs![&each, none, false, Input::None, &result], |e| {
            views::as_strided(e, &result, &vec![1; x.shape.len()], &vec![0; x.shape.len()], None);
            result.clone()
        })
    });
    let (kept, target) = (x.clone(), target.clone());
    e.track(result, "MseLossBackward0", &[x], move |e, grad, _| {
        let result = e.op("aten::mse_loss_backward", inputs![grad, &kept, &target, MEAN], |e| {
            let zeros = fill::zeros_like(e, &kept);
            let list = inputs![grad, &kept, &target, MEAN, &zeros];
            e.op("aten::mse_loss_backward.grad_input", list, |_| zeros.clone())
        });
        vec![Some(result)]
    })
}

/// The mean of binary cross-entropies of logits.
pub(crate) fn bce_with_logits(e: &mut Eager, x: &Tensor, target: &Tensor) -> Tensor {
    let none = Input::None;
    let list = inputs![x, target, none, none, MEAN];
    let result = e.op("aten::binary_cross_entropy_with_logits", list, |e| {
        let log = log_sigmoid(e, x);
        let each = ones_to_fill(e, target);
        fill::fill_(e, &each, Input::Int(1));
        in_place(e, "aten::sub_.Tensor", &each, target);
        in_place(e, "aten::mul_.Tensor", &each, x);
        in_place(e, "aten::sub_.Tensor", &each, &log);
        mean(e, &each)
    });
    let (kept, target) = (x.clone(), target.clone());
    e.track(result, "BinaryCrossEntropyWithLogitsBackward0", &[x], move |e, grad, _| {
        let result = e.op("aten::sigmoid", inputs![&kept], |e| e.like(&kept));
        in_place(e, "aten::sub_.Tensor", &result, &target);
        in_place(e, "aten::mul_.Tensor", &result, grad);
        e.op("aten::div_.Scalar", inputs![&result, kept.numel()], |e| {
            let count = e.host(&[], Dtype::I64);
            in_place(e, "aten::div_.Tensor", &result, &count);
            result.clone()
        });
        vec![Some(result)]
    })
}

fn log_sigmoid(e: &mut Eager, x: &Tensor) -> Tensor {
    let none = Input::None;
    e.composite("aten::log_sigmoid", inputs![x], |e| {
        let [result, _] = e.op("aten::log_sigmoid_forward", inputs![x], |e| {
            let result = e.op("aten::empty_like", inputs![x, none, none, none, none, none], |e| {
                fill::empty_strided(e, x)
            });
            [result, fill::empty(e, &[0], x.dtype, none)]
        });
        result
    })
}

fn ones_to_fill(e: &mut Eager, like: &Tensor) -> Tensor {
    let none = Input::None;
    let list = inputs![like, none, none, none, none, fill::PRESERVE];
    e.op("aten::empty_like", list, |e| fill::empty_strided(e, like))
}

fn in_place(e: &mut Eager, op: &str, to: &Tensor, by: &Tensor) {
    let subtracts = op.starts_with("aten::sub_");
    let list = inputs![to, by, Input::Int(1)];
    e.op(op, if subtracts { list } else { &list[..2] }, |_| to.clone());
}

fn mean(e: &mut Eager, x: &Tensor) -> Tensor {
    let none: &[i64] = &[];
    e.op("aten::mean", inputs![x, Input::None], |e| {
        e.op("aten::mean.dim", inputs![x, none, false, Input::None], |e| {
            let result = e.empty(&[], x.dtype);
            views::as_strided(e, &result, &vec![1; x.shape.len()], &vec![0; x.shape.len()], None);
            result
        })
    })
}

/// The mean cross-entropy of rows of logits `[batch, classes]`, given the class of each row.
pub(crate) fn cross_entropy(e: &mut Eager, x: &Tensor, classes: &Tensor) -> Tensor {
    let (none, ignored) = (Input::None, Input::Int(-100));
    let list = inputs![x, classes, none, MEAN, ignored, Input::Float(0.0)];
    e.composite("aten::cross_entropy_loss", list, |e| {
        let log = log_softmax(e, x);
        let list = inputs![&log, classes, none, MEAN, ignored];
        e.composite("aten::nll_loss_nd", list, |e| {
            e.composite("aten::nll_loss", list, |e| nll(e, &log, classes))
        })
    })
}

fn log_softmax(e: &mut Eager, x: &Tensor) -> Tensor {
    let (dim, dtype) = (Input::Int(1), code(x.dtype));
    e.composite("aten::log_softmax.int", inputs![x, dim, dtype], |e| {
        copy::to_here(e, x);
        let result = e.op("aten::_log_softmax", inputs![x, dim, false], |e| e.like(x));
        let kept = result.clone();
        e.track(result, "LogSoftmaxBackward0", &[x], move |e, grad, _| {
            let list = inputs![grad, &kept, dim, dtype];
            vec![Some(e.op("aten::_log_softmax_backward_data", list, |e| e.like(&kept)))]
        })
    })
}

fn nll(e: &mut Eager, log: &Tensor, classes: &Tensor) -> Tensor {
    let ignored = Input::Int(-100);
    let list = inputs![log, classes, Input::None, MEAN, ignored];
    let [loss, total] = e.op("aten::nll_loss_forward", list, |e| {
        let total = e.empty(&[], log.dtype);
        let total = fill::resized(e, &total, &[]);
        [e.empty(&[], log.dtype), total]
    });
    let (kept, classes) = (log.clone(), classes.clone());
    e.track(loss, "NllLossBackward0", &[log], move |e, grad, _| {
        let list = inputs![grad, &kept, &classes, Input::Undefined, MEAN, ignored, &total];
        let result = e.op("aten::nll_loss_backward", list, |e| {
            let result = e.like(&kept);
            fill::zero_(e, &result);
            result
        });
        vec![Some(result)]
    })
}
