//! Losses: negative log likelihood, and elementwise ones with a reduction.

use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::child;
use crate::kernel::{Elementwise, Kernel, Loss, Operand, Pass, Role, Slot, Work};
use crate::layout;
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, read, result};
use crate::ops::pointwise::{self, Rule};
use crate::ops::{gradients, loss_layer};

/// Definitions of losses.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::nll_loss_forward", "aten::nll_loss2d_forward"], likelihood)
        .outputs(scalars)
        .backward(likelihood_gradient),
    OpDef::leaf(&["aten::nll_loss_backward", "aten::nll_loss2d_backward"], likelihood_backward)
        .outputs(|call| Some(vec![Arg::Tensor(plain(call.tensor("self")?))]))
        .expand(zeros),
    OpDef::leaf(&["aten::mse_loss"], |call| forward(call, "mse_loss", Work::Light))
        .outputs(reduced)
        .expand(reduce)
        .backward(|call| gradients::by_input(call, "aten::mse_loss_backward")),
    OpDef::leaf(&["aten::smooth_l1_loss", "aten::huber_loss"], |call| {
        forward(call, "smooth_l1_loss", Work::Light)
    })
    .outputs(reduced)
    .expand(reduce),
    OpDef::leaf(&["aten::binary_cross_entropy"], |call| forward(call, "binary_cross_entropy", Work::Medium))
        .outputs(reduced)
        .expand(reduce),
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

/// Returns the op that reduces the losses of all elements.
fn reduce(call: &BoundCall<'_>) -> Vec<OpCall> {
    call.tensor("self").and_then(|input| loss_layer::reduced(call, input)).into_iter().collect()
}

/// Returns the calls of a gradient that is written into zeros.
fn into_zeros(call: &BoundCall<'_>, rule: &Rule) -> Vec<OpCall> {
    let rest = pointwise::expand(call, rule);
    let written = rest.first().and_then(|next| next.inputs.last().cloned());
    let zeros = written.map(|target| child(call, "aten::zero_", vec![target]));
    zeros.into_iter().chain(rest).collect()
}

/// Returns the calls for zeros of the input's shape, which are written before the gradient of each row's class.
fn zeros(call: &BoundCall<'_>) -> Vec<OpCall> {
    let input = call.tensor("self");
    input.map(|input| child(call, "aten::zero_", vec![Arg::Tensor(plain(input))])).into_iter().collect()
}

/// Returns the loss of each element, or one number.
fn reduced(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let input = call.tensor("self")?;
    let each = call.int("reduction") == Some(UNREDUCED);
    Some(vec![Arg::Tensor(if each { plain(input) } else { Tensor::contiguous(&[], input.dtype) })])
}

/// Returns the launches of the losses of all elements. If requested, another op reduces them from scratch memory of this op.
fn forward(call: &BoundCall<'_>, op: &'static str, cost: Work) -> Option<Lowering> {
    let (input, target) = call.tensor("self").zip(call.tensor("target"))?;
    if input.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let weight = if call.has("weight") { call.tensor("weight") } else { None };
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
    let each = call.int("reduction") == Some(UNREDUCED);
    let written = if each { result(call, call.position("reduction")?, losses).0 } else { own };
    let weight = weight.and_then(|_| read(call, "weight"));
    Some(work(
        kernel,
        input.dtype,
        [read(call, "self"), read(call, "target"), weight, Some(written)],
        input.numel(),
    ))
}

/// Returns rows, classes and positions: `[rows, classes, ...]`, or one row of classes.
fn sizes(input: &Tensor, pass: Pass) -> Loss {
    let (rows, classes) =
        if input.shape.len() == 1 { (1, input.size(0)) } else { (input.size(0), input.size(1)) };
    let spatial = input.shape.iter().skip(2).fold(1, |n: u64, &size| n.saturating_mul(count(size)));
    Loss { pass, rows: count(rows), classes: count(classes), spatial }
}

/// Returns the loss and the sum of weights.
fn scalars(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let (input, target) = (call.tensor("self")?, call.tensor("target")?);
    let each = call.int("reduction") == Some(UNREDUCED);
    let shape = if each { &target.shape[..] } else { &[] };
    let total = Tensor::contiguous(&[], input.dtype);
    Some(vec![Arg::Tensor(Tensor::contiguous(shape, input.dtype)), Arg::Tensor(total)])
}

/// Takes (gradient, input, target, weight, reduction, ignored class, sum of weights).
fn likelihood_gradient(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(all) = call.results().filter(|all| all.len() > 1) else { return Vec::new() };
    let wide = call.tensor("self").is_some_and(|input| input.shape.len() > 2);
    let name = if wide { "aten::nll_loss2d_backward" } else { "aten::nll_loss_backward" };
    let given = call.inputs.iter().take(5).cloned();
    vec![child(call, name, std::iter::once(all[0].clone()).chain(given).chain([all[1].clone()]).collect())]
}

/// Returns the launches of the loss, which reads one element per row: that of its class.
fn likelihood(call: &BoundCall<'_>) -> Option<Lowering> {
    let (Some(input), Some(given)) = (call.tensor("self"), scalars(call)) else {
        return None;
    };
    let loss = sizes(input, Pass::Forward);
    let places = loss.rows.saturating_mul(loss.spatial);
    if places == 0 {
        return Some(Lowering::Children);
    }
    let picked = Operand { slot: Slot::Input(0, 0), role: Role::Read, bytes: places * input.dtype.size() };
    let results = given.iter().enumerate().map(|(ret, arg)| {
        let tensor = call.output(ret).or_else(|| arg.tensors().first());
        tensor.map(|tensor| crate::operands::output(ret, tensor))
    });
    let operands = [Some(picked), read(call, "target"), read(call, "weight")].into_iter().chain(results);
    Some(work(Kernel::Loss(loss), input.dtype, operands, places.saturating_mul(2)))
}

/// Returns the launches of the gradient, which is zero except at one class per row; another op writes the zeros.
fn likelihood_backward(call: &BoundCall<'_>) -> Option<Lowering> {
    let input = call.tensor("self")?;
    let loss = sizes(input, Pass::Backward);
    let places = loss.rows.saturating_mul(loss.spatial);
    if places == 0 {
        return Some(Lowering::Nothing);
    }
    let (target, _) = result(call, 7, plain(input));
    let target = Operand { bytes: places * input.dtype.size(), ..target };
    let operands = [
        read(call, "grad_output"),
        read(call, "target"),
        read(call, "weight"),
        read(call, "total_weight"),
        Some(target),
    ];
    Some(work(Kernel::Loss(loss), input.dtype, operands, places))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::{F32, I64};
    use crate::OpSet;

    #[test]
    fn likelihood_reads_one_element_a_row() {
        let input = Arg::Tensor(Tensor::contiguous(&[16, 1000], F32));
        let target = Arg::Tensor(Tensor::contiguous(&[16], I64));
        let inputs = vec![input, target, Arg::None, Arg::Int(1), Arg::Int(-100)];
        let lowered = OpSet::standard().lower(&OpCall::new("aten::nll_loss_forward", inputs));
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (16 * 4 + 16 * 8, 8));
    }

    #[test]
    fn a_mean_of_squares_leaves_the_squares_in_memory() {
        let tensor = || Arg::Tensor(Tensor::contiguous(&[1024, 1], F32));
        let call = OpCall::new("aten::mse_loss", vec![tensor(), tensor(), Arg::Int(1)]);
        let lowered = OpSet::standard().lower(&call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (8192, 4096));
        assert_eq!(kernel.operands.last().map(|operand| operand.slot), Some(Slot::Scratch));
    }

    #[test]
    fn gradients_are_written_into_zeros() {
        let tensor = |shape: &[i64]| Arg::Tensor(Tensor::contiguous(shape, F32));
        let inputs = vec![tensor(&[]), tensor(&[64, 1]), tensor(&[64, 1]), Arg::Int(1)];
        let all = OpSet::standard().leaves(&OpCall::new("aten::mse_loss_backward", inputs));
        let names: Vec<_> = all.iter().map(|leaf| leaf.op.name.as_str()).collect();
        assert_eq!(names, ["aten::fill_", "aten::mse_loss_backward"]);
    }
}
