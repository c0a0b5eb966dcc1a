//! User-level losses.

use crate::bound_call::BoundCall;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, like};
use crate::dtype::Dtype;
use crate::op_def::OpDef;

/// Definitions of losses that call others.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::cross_entropy_loss"]).expand(cross_entropy),
    OpDef::composite(&["aten::nll_loss_nd"]).expand(likelihood),
    OpDef::composite(&["aten::nll_loss"])
        .expand(|call| vec![child(call, "aten::nll_loss_forward", padded(call, 5))]),
    OpDef::composite(&["aten::nll_loss2d"])
        .expand(|call| vec![child(call, "aten::nll_loss2d_forward", padded(call, 5))]),
    OpDef::composite(&["aten::l1_loss"]).expand(absolute),
    OpDef::composite(&["aten::binary_cross_entropy_with_logits"]).expand(logits).backward(logits_gradient),
    OpDef::composite(&["aten::kl_div", "aten::soft_margin_loss", "aten::soft_margin_loss_backward"]),
];

/// PyTorch's numbers for reductions.
const MEAN: i64 = 1;
const SUM: i64 = 2;

/// Returns the arguments (input, target, weight, reduction, ignored class), with defaults for missing ones.
fn padded(call: &BoundCall<'_>, arguments: usize) -> Vec<Arg> {
    let mut inputs: Vec<Arg> = call.inputs.iter().take(arguments).cloned().collect();
    inputs.resize(arguments, Arg::None);
    if inputs[3] == Arg::None {
        inputs[3] = Arg::Int(MEAN);
    }
    inputs
}

/// Returns the op that reduces the losses of all elements, if requested.
pub(crate) fn reduced(call: &BoundCall<'_>, losses: &Tensor) -> Option<OpCall> {
    let name = match call.int("reduction").unwrap_or(MEAN) {
        MEAN => "aten::mean",
        SUM => "aten::sum",
        _ => return None,
    };
    Some(child(call, name, vec![Arg::Tensor(like(losses)), Arg::None]))
}

/// Returns the calls of a cross entropy. Classes are the second dimension, or the only one.
fn cross_entropy(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(input) = call.tensor("self") else { return Vec::new() };
    let dim = i64::from(input.shape.len() > 1);
    let first = child(call, "aten::log_softmax", vec![Arg::Tensor(input.clone()), Arg::Int(dim), Arg::None]);
    let mut inputs = padded(call, 5);
    inputs[0] = Arg::Tensor(like(input));
    let smooth = call
        .float("label_smoothing")
        .filter(|&share| share > 0.0)
        .map_or_else(Vec::new, |_| smoothed(call, input, dim));
    [first, child(call, "aten::nll_loss_nd", inputs)].into_iter().chain(smooth).collect()
}

/// Returns the calls that label smoothing adds: the mean loss of all classes in each row. Ignored rows do not count.
fn smoothed(call: &BoundCall<'_>, input: &Tensor, dim: i64) -> Vec<OpCall> {
    let Some(target) = call.tensor("target").filter(|target| target.dtype == Dtype::I64) else {
        return Vec::new();
    };
    let losses = Arg::Tensor(like(input));
    let each = || Arg::Tensor(Tensor::contiguous(&target.shape, input.dtype));
    let mask = || Arg::Tensor(Tensor::contiguous(&target.shape, Dtype::Bool));
    let one = || Arg::Tensor(Tensor::contiguous(&[], input.dtype));
    let mut steps = Vec::new();
    if let Some(weight) = call.tensor("weight") {
        steps.push(child(call, "aten::mul", vec![losses.clone(), Arg::Tensor(weight.clone())]));
    }
    steps.push(child(
        call,
        "aten::sum",
        vec![losses, Arg::Ints([dim].as_slice().into()), Arg::Bool(false), Arg::None],
    ));
    steps.push(child(call, "aten::neg", vec![each()]));
    steps.push(child(
        call,
        "aten::eq",
        vec![Arg::Tensor(target.clone()), Arg::Int(call.int("ignore_index").unwrap_or(-100))],
    ));
    steps.push(child(call, "aten::masked_fill_", vec![each(), mask(), Arg::Float(0.0)]));
    match call.int("reduction").unwrap_or(MEAN) {
        MEAN => {
            steps.push(child(call, "aten::bitwise_not", vec![mask()]));
            steps.push(child(call, "aten::sum", vec![mask(), Arg::None]));
            steps.push(child(call, "aten::sum", vec![each(), Arg::None]));
            steps.push(child(
                call,
                "aten::div",
                vec![one(), Arg::Tensor(Tensor::contiguous(&[], Dtype::I64))],
            ));
        }
        SUM => steps.push(child(call, "aten::sum", vec![each(), Arg::None])),
        _ => {}
    }
    let part = || if call.int("reduction").unwrap_or(MEAN) == 0 { each() } else { one() };
    for _ in 0..2 {
        steps.push(child(call, "aten::mul", vec![part(), Arg::Float(0.5)]));
    }
    steps.push(child(call, "aten::add", vec![part(), part(), Arg::Int(1)]));
    steps
}

fn likelihood(call: &BoundCall<'_>) -> Vec<OpCall> {
    let name = match call.tensor("self").map(|input| input.shape.len()) {
        Some(1 | 2) => "aten::nll_loss",
        Some(_) => "aten::nll_loss2d",
        None => return Vec::new(),
    };
    vec![child(call, name, padded(call, 5))]
}

fn absolute(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(input), Some(target)) = (call.tensor("self"), call.tensor("target")) else { return Vec::new() };
    let both = vec![Arg::Tensor(input.clone()), Arg::Tensor(target.clone()), Arg::Int(1)];
    let losses = like(input);
    let steps = [child(call, "aten::sub", both), child(call, "aten::abs", vec![Arg::Tensor(losses.clone())])];
    steps.into_iter().chain(reduced(call, &losses)).collect()
}

/// `(1 - target) * input - log(sigmoid(input))`, and weights; takes (input, target, weight, weight of positives,
/// reduction).
fn logits(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(input), Some(target)) = (call.tensor("self"), call.tensor("target")) else { return Vec::new() };
    let (own, other) = (|| Arg::Tensor(like(input)), || Arg::Tensor(target.clone()));
    let mut steps = vec![child(call, "aten::log_sigmoid_forward", vec![Arg::Tensor(input.clone())])];
    if let Some(weight) = call.tensor("pos_weight") {
        let weight = Arg::Tensor(weight.clone());
        steps.push(child(call, "aten::sub", vec![weight, Arg::Int(1), Arg::Int(1)]));
        steps.push(child(call, "aten::mul", vec![own(), other()]));
        steps.push(child(call, "aten::add_", vec![own(), Arg::Int(1), Arg::Int(1)]));
        steps.push(child(call, "aten::mul_", vec![own(), own()]));
    }
    steps.push(child(call, "aten::fill_", vec![own(), Arg::Int(1)]));
    steps.push(child(call, "aten::sub_", vec![own(), other(), Arg::Int(1)]));
    steps.push(child(call, "aten::mul_", vec![own(), Arg::Tensor(input.clone())]));
    steps.push(child(call, "aten::sub_", vec![own(), own(), Arg::Int(1)]));
    if let Some(weight) = call.tensor("weight") {
        steps.push(child(call, "aten::mul_", vec![own(), Arg::Tensor(weight.clone())]));
    }
    steps.into_iter().chain(reduced(call, input)).collect()
}

/// `(sigmoid(input) - target) * gradient`, and weights, in new memory.
fn logits_gradient(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(input), Some(target)) = (call.tensor("self"), call.tensor("target")) else { return Vec::new() };
    let own = || Arg::Tensor(like(input));
    let mut steps = vec![
        child(call, "aten::sigmoid", vec![Arg::Tensor(input.clone())]),
        child(call, "aten::sub_", vec![own(), Arg::Tensor(target.clone()), Arg::Int(1)]),
    ];
    let each = call.int("reduction") == Some(0);
    let grad = if each { like(input) } else { Tensor::contiguous(&[], input.dtype) };
    steps.push(child(call, "aten::mul_", vec![own(), Arg::Tensor(grad)]));
    if let Some(weight) = call.tensor("weight") {
        steps.push(child(call, "aten::mul_", vec![own(), Arg::Tensor(weight.clone())]));
    }
    if call.int("reduction").unwrap_or(MEAN) == MEAN {
        steps.push(child(call, "aten::div_", vec![own(), Arg::Int(input.numel() as i64)]));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::{F32, I64};
    use crate::OpSet;
    use crate::child_calls::fresh;

    fn leaves(name: &str, inputs: Vec<Arg>) -> Vec<String> {
        OpSet::standard().leaves(&OpCall::new(name, inputs)).into_iter().map(|leaf| leaf.op.name).collect()
    }

    #[test]
    fn cross_entropy_is_two_kernels() {
        let inputs = vec![fresh(&[16, 10], F32), fresh(&[16], I64), Arg::None, Arg::Int(1), Arg::Int(-100)];
        assert_eq!(
            leaves("aten::cross_entropy_loss", inputs),
            ["aten::_log_softmax", "aten::nll_loss_forward"]
        );
    }

    #[test]
    fn entropy_with_logits_is_many_small_ones() {
        let inputs = vec![fresh(&[64], F32), fresh(&[64], F32), Arg::None, Arg::None, Arg::Int(1)];
        let found = leaves("aten::binary_cross_entropy_with_logits", inputs);
        let expected = [
            "aten::log_sigmoid_forward",
            "aten::fill_",
            "aten::sub_",
            "aten::mul_",
            "aten::sub_",
            "aten::mean",
        ];
        assert_eq!(found, expected);
    }
}
