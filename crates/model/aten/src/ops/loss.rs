//! Losses: negative log likelihood, and elementwise ones with a reduction.

use crate::call::{Arg, OpCall, Tensor};
use crate::child::child;
use crate::kernel::{Elementwise, Kernel, Loss, Operand, Pass, Role, Slot, Work};
use crate::layout;
use crate::operands::{count, read, result};
use crate::ops::pointwise::{self, Rule};
use crate::ops::{Lowered, OpDef, gradients, loss_layer};
use crate::work::work;

/// Losses.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::nll_loss_forward", "aten::nll_loss2d_forward"], likelihood)
        .outputs(scalars)
        .backward(likelihood_gradient),
    OpDef::leaf(&["aten::nll_loss_backward", "aten::nll_loss2d_backward"], likelihood_backward)
        .outputs(|call| Some(vec![Arg::Tensor(plain(call.tensor(1)?))]))
        .expand(zeros),
    OpDef::leaf(&["aten::mse_loss"], |call| forward(call, "mse_loss", 2, Work::Light))
        .outputs(loss_shape)
        .expand(|call| reduce(call, 2))
        .backward(|call| gradients::by_input(call, "aten::mse_loss_backward")),
    OpDef::leaf(&["aten::smooth_l1_loss", "aten::huber_loss"], |call| {
        forward(call, "smooth_l1_loss", 2, Work::Light)
    })
    .outputs(loss_shape)
    .expand(|call| reduce(call, 2)),
    OpDef::leaf(&["aten::binary_cross_entropy"], |call| {
        forward(call, "binary_cross_entropy", 3, Work::Medium)
    })
    .outputs(|call| reduced(call, 3))
    .expand(|call| reduce(call, 3)),
    OpDef::leaf(&["aten::mse_loss_backward"], |call| pointwise::lower(call, &SQUARED))
        .outputs(|call| pointwise::outputs(call, &SQUARED))
        .expand(|call| into_zeros(call, &SQUARED)),
    OpDef::leaf(&["aten::smooth_l1_loss_backward", "aten::huber_loss_backward"], |call| {
        pointwise::lower(call, &ABSOLUTE)
    })
    .outputs(|call| pointwise::outputs(call, &ABSOLUTE))
    .expand(|call| into_zeros(call, &ABSOLUTE)),
    OpDef::leaf(&["aten::binary_cross_entropy_backward"], |call| pointwise::lower(call, &ENTROPY))
        .outputs(|call| pointwise::outputs(call, &ENTROPY)),
];

const SQUARED: Rule = Rule::new("mse_loss_backward", Work::Light, 3).calls_out();
const ABSOLUTE: Rule = Rule::new("smooth_l1_loss_backward", Work::Light, 3).calls_out();
const ENTROPY: Rule = Rule::new("binary_cross_entropy_backward", Work::Medium, 4);

/// PyTorch's `Reduction::None`.
const UNREDUCED: i64 = 0;

fn plain(model: &Tensor) -> Tensor {
    Tensor::contiguous(&model.shape, model.dtype)
}

fn loss_shape(call: &OpCall) -> Option<Vec<Arg>> {
    reduced(call, 2)
}

/// The losses of all elements are reduced by another op.
fn reduce(call: &OpCall, reduction: usize) -> Vec<OpCall> {
    call.tensor(0).and_then(|input| loss_layer::reduced(call, reduction, input)).into_iter().collect()
}

/// A gradient is written into zeros.
fn into_zeros(call: &OpCall, rule: &Rule) -> Vec<OpCall> {
    let rest = pointwise::expand(call, rule);
    let written = rest.first().and_then(|next| next.inputs.last().cloned());
    let zeros = written.map(|target| child(call, "aten::zero_", vec![target]));
    zeros.into_iter().chain(rest).collect()
}

/// Zeros of the input's shape, written before the gradient of each row's class.
fn zeros(call: &OpCall) -> Vec<OpCall> {
    let input = call.tensor(1);
    input.map(|input| child(call, "aten::zero_", vec![Arg::Tensor(plain(input))])).into_iter().collect()
}

/// The loss of each element, or one number.
fn reduced(call: &OpCall, reduction: usize) -> Option<Vec<Arg>> {
    let input = call.tensor(0)?;
    let each = call.int(reduction) == Some(UNREDUCED);
    Some(vec![Arg::Tensor(if each { plain(input) } else { Tensor::contiguous(&[], input.dtype) })])
}

/// The losses of all elements. Another op reduces them, where asked to, from memory of this one's own.
fn forward(call: &OpCall, op: &'static str, reduction: usize, cost: Work) -> Lowered {
    let Some((input, target)) = call.tensor(0).zip(call.tensor(1)) else {
        return crate::fallback::lower(call);
    };
    if input.numel() == 0 {
        return Lowered::Nothing;
    }
    let weight = call.tensor(2).filter(|_| reduction > 2);
    let sources: Vec<&Tensor> = [Some(input), Some(target), weight].into_iter().flatten().collect();
    let losses = plain(input);
    let kernel = Kernel::Elementwise(Elementwise {
        op,
        work: cost,
        numel: losses.numel(),
        inputs: sources.len() as u32,
        layout: layout::elementwise(&losses, &sources),
    });
    let own = Operand { slot: Slot::Scratch, role: Role::Write, bytes: losses.bytes() };
    let each = call.int(reduction) == Some(UNREDUCED);
    let written = if each { result(call, reduction, losses).0 } else { own };
    let weight = weight.and_then(|_| read(call, 2));
    work(kernel, input.dtype, [read(call, 0), read(call, 1), weight, Some(written)], input.numel())
}

/// Rows, classes and positions: `[rows, classes, ...]`, or one row of classes.
fn sizes(input: &Tensor, pass: Pass) -> Loss {
    let (rows, classes) =
        if input.shape.len() == 1 { (1, input.size(0)) } else { (input.size(0), input.size(1)) };
    let spatial = input.shape.iter().skip(2).fold(1, |n: u64, &size| n.saturating_mul(count(size)));
    Loss { pass, rows: count(rows), classes: count(classes), spatial }
}

/// The loss and the sum of weights.
fn scalars(call: &OpCall) -> Option<Vec<Arg>> {
    let (input, target) = (call.tensor(0)?, call.tensor(1)?);
    let each = call.int(3) == Some(UNREDUCED);
    let shape = if each { &target.shape[..] } else { &[] };
    let total = Tensor::contiguous(&[], input.dtype);
    Some(vec![Arg::Tensor(Tensor::contiguous(shape, input.dtype)), Arg::Tensor(total)])
}

/// Takes (gradient, input, target, weight, reduction, ignored class, sum of weights).
fn likelihood_gradient(call: &OpCall) -> Vec<OpCall> {
    let Some(all) = crate::registry::outputs(call).filter(|all| all.len() > 1) else { return Vec::new() };
    let wide = call.tensor(0).is_some_and(|input| input.shape.len() > 2);
    let name = if wide { "aten::nll_loss2d_backward" } else { "aten::nll_loss_backward" };
    let given = call.inputs.iter().take(5).cloned();
    vec![child(call, name, std::iter::once(all[0].clone()).chain(given).chain([all[1].clone()]).collect())]
}

/// Of each row one element is read: that of its class.
fn likelihood(call: &OpCall) -> Lowered {
    let (Some(input), Some(given)) = (call.tensor(0), scalars(call)) else {
        return crate::fallback::lower(call);
    };
    let loss = sizes(input, Pass::Forward);
    let places = loss.rows.saturating_mul(loss.spatial);
    if places == 0 {
        return Lowered::Children;
    }
    let picked = Operand { slot: Slot::Input(0, 0), role: Role::Read, bytes: places * input.dtype.size() };
    let results = given.iter().enumerate().map(|(ret, arg)| {
        let tensor = call.output(ret).or_else(|| arg.tensors().first());
        tensor.map(|tensor| crate::operands::output(ret, tensor))
    });
    let operands = [Some(picked), read(call, 1), read(call, 2)].into_iter().chain(results);
    work(Kernel::Loss(loss), input.dtype, operands, places.saturating_mul(2))
}

/// The gradient is zero but at one class a row; another op writes the zeros.
fn likelihood_backward(call: &OpCall) -> Lowered {
    let Some(input) = call.tensor(1) else { return crate::fallback::lower(call) };
    let loss = sizes(input, Pass::Backward);
    let places = loss.rows.saturating_mul(loss.spatial);
    if places == 0 {
        return Lowered::Nothing;
    }
    let (target, _) = result(call, 7, plain(input));
    let target = Operand { bytes: places * input.dtype.size(), ..target };
    let operands = [read(call, 0), read(call, 2), read(call, 3), read(call, 6), Some(target)];
    work(Kernel::Loss(loss), input.dtype, operands, places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::{F32, I64};

    #[test]
    fn likelihood_reads_one_element_a_row() {
        let input = Arg::Tensor(Tensor::contiguous(&[16, 1000], F32));
        let target = Arg::Tensor(Tensor::contiguous(&[16], I64));
        let inputs = vec![input, target, Arg::None, Arg::Int(1), Arg::Int(-100)];
        let lowered = crate::registry::lower(&OpCall::new("aten::nll_loss_forward", inputs));
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (16 * 4 + 16 * 8, 8));
    }

    #[test]
    fn a_mean_of_squares_leaves_the_squares_in_memory() {
        let tensor = || Arg::Tensor(Tensor::contiguous(&[1024, 1], F32));
        let call = OpCall::new("aten::mse_loss", vec![tensor(), tensor(), Arg::Int(1)]);
        let lowered = crate::registry::lower(&call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (8192, 4096));
        assert_eq!(kernel.operands.last().map(|operand| operand.slot), Some(Slot::Scratch));
    }

    #[test]
    fn gradients_are_written_into_zeros() {
        let tensor = |shape: &[i64]| Arg::Tensor(Tensor::contiguous(shape, F32));
        let inputs = vec![tensor(&[]), tensor(&[64, 1]), tensor(&[64, 1]), Arg::Int(1)];
        let all = crate::leaves(&OpCall::new("aten::mse_loss_backward", inputs));
        let names: Vec<_> = all.iter().map(|leaf| leaf.op.name.as_str()).collect();
        assert_eq!(names, ["aten::fill_", "aten::mse_loss_backward"]);
    }
}
