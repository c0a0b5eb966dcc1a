//! Batch norm, with cuDNN's and PyTorch's own kernels.

use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, Tensor};
use crate::child_calls::{child, gradient, ints};
use crate::dtype::Dtype;
use crate::kernel::{BatchNorm, Kernel, Pass};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, output_bytes, read, update};

/// Definitions of batch norms.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::cudnn_batch_norm"], |call| forward(call, true)).outputs(shape).backward(|call| {
        let grad = gradient(call).map_or(Arg::None, Arg::Tensor);
        let reserve = saved(call, 3);
        let inputs = vec![
            call.arg_or_none("input"),
            grad,
            call.arg_or_none("weight"),
            call.arg_or_none("running_mean"),
            call.arg_or_none("running_var"),
        ];
        let rest = [saved(call, 1), saved(call, 2), call.arg_or_none("epsilon"), reserve];
        vec![child(call, "aten::cudnn_batch_norm_backward", inputs.into_iter().chain(rest).collect())]
    }),
    OpDef::leaf(&["aten::native_batch_norm", "aten::_native_batch_norm_legit"], |call| forward(call, false))
        .outputs(shape)
        .backward(|call| {
            let grad = gradient(call).map_or(Arg::None, Arg::Tensor);
            let inputs = vec![
                grad,
                call.arg_or_none("input"),
                call.arg_or_none("weight"),
                call.arg_or_none("running_mean"),
                call.arg_or_none("running_var"),
            ];
            let rest = [
                saved(call, 1),
                saved(call, 2),
                call.arg_or_none("training"),
                call.arg_or_none("eps"),
                ints(&[1, 1, 1]),
            ];
            vec![child(call, "aten::native_batch_norm_backward", inputs.into_iter().chain(rest).collect())]
        }),
    OpDef::leaf(&["aten::_batch_norm_with_update"], |call| forward(call, false)).outputs(shape),
    OpDef::leaf(&["aten::cudnn_batch_norm_backward"], |call| backward(call, true)).outputs(shape_backward),
    OpDef::leaf(&["aten::native_batch_norm_backward", "aten::batch_norm_backward"], |call| {
        backward(call, false)
    })
    .outputs(shape_backward),
];

/// Type of the statistics.
const STATISTICS: Dtype = Dtype::F32;

fn kernel(input: &Tensor, pass: Pass, training: bool, cudnn: bool) -> Kernel {
    let batch = count(input.size(0));
    let channels = count(input.size(1));
    Kernel::BatchNorm(BatchNorm {
        pass,
        training,
        batch,
        channels,
        spatial: input.numel() / (batch * channels).max(1),
        channels_last: input.is_channels_last(),
        cudnn,
    })
}

/// Returns the bytes of one statistic per channel, such as the means.
fn statistics(input: &Tensor) -> u64 {
    count(input.size(1)).saturating_mul(STATISTICS.size())
}

/// Returns a result of the forward pass that the backward pass takes.
fn saved(call: &BoundCall<'_>, ret: usize) -> Arg {
    call.results().and_then(|all| all.get(ret).cloned()).unwrap_or_default()
}

fn like(model: &Tensor) -> Tensor {
    Tensor { offset: 0, ..model.clone() }
}

fn shape(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let input = call.tensor("input")?;
    let saved = || Arg::Tensor(Tensor::contiguous(&[input.size(1)], STATISTICS));
    let reserve = Arg::Tensor(Tensor::contiguous(&[0], Dtype::I8));
    let mut all = vec![Arg::Tensor(like(input)), saved(), saved()];
    if call.name == "aten::cudnn_batch_norm" || call.name == "aten::_batch_norm_with_update" {
        all.push(reserve);
    }
    Some(all)
}

/// Returns the launches of the forward pass. An op without the argument `training` always trains.
fn forward(call: &BoundCall<'_>, cudnn: bool) -> Option<Lowering> {
    let input = call.tensor("input")?;
    if input.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let training = !call.has("training") || call.flag("training").unwrap_or(true);
    let running = |arg| if training { update(call, arg) } else { read(call, arg) };
    let kept = |ret| training.then(|| output_bytes(ret, statistics(input)));
    let operands = [
        read(call, "input"),
        read(call, "weight"),
        read(call, "bias"),
        running("running_mean"),
        running("running_var"),
        Some(output_bytes(0, input.bytes())),
        kept(1),
        kept(2),
    ];
    let flops = input.numel().saturating_mul(if training { 5 } else { 2 });
    Some(work(kernel(input, Pass::Forward, training, cudnn), input.dtype, operands, flops))
}

fn shape_backward(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let input = call.tensor("input")?;
    let affine = || Arg::Tensor(Tensor::contiguous(&[input.size(1)], STATISTICS));
    Some(vec![Arg::Tensor(like(input)), affine(), affine()])
}

/// Returns the launches of the gradients of all three, except those that a mask excludes.
fn backward(call: &BoundCall<'_>, cudnn: bool) -> Option<Lowering> {
    let input = call.tensor("input")?;
    if input.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    // Whether the forward pass trained.
    let training = ["train", "update"].into_iter().find(|name| call.has(name));
    let training = training.and_then(|name| call.flag(name)).unwrap_or(true);
    let mask = if call.has("output_mask") { call.ints("output_mask") } else { None };
    let asked = |ret: usize| mask.as_ref().and_then(|mask| mask.get(ret)).is_none_or(|&flag| flag != 0);
    let gradient = |ret: usize, bytes| asked(ret).then(|| output_bytes(ret as u16, bytes));
    let gradient_name = if cudnn { "grad_output" } else { "grad_out" };
    let deviation = if call.has("save_invstd") { "save_invstd" } else { "save_var" };
    let operands = [
        read(call, gradient_name),
        read(call, "input"),
        read(call, "weight"),
        read(call, "save_mean"),
        read(call, deviation),
        gradient(0, input.bytes()),
        gradient(1, statistics(input)),
        gradient(2, statistics(input)),
    ];
    Some(work(
        kernel(input, Pass::Backward, training, cudnn),
        input.dtype,
        operands,
        input.numel().saturating_mul(8),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::call::OpCall;

    fn tensor(shape: &[i64]) -> Arg {
        Arg::Tensor(Tensor::contiguous(shape, F32))
    }

    #[test]
    fn training_updates_the_running_statistics() {
        let call = |training| {
            let statistics = std::iter::repeat_with(|| tensor(&[64])).take(4);
            let inputs = std::iter::once(tensor(&[16, 64, 8, 8])).chain(statistics);
            let rest = [Arg::Bool(training), Arg::Float(0.1), Arg::Float(1e-5)];
            OpCall::new("aten::cudnn_batch_norm", inputs.chain(rest).collect())
        };
        let bytes = 16 * 64 * 64 * 4;
        let lowered = OpSet::standard().lower(&call(true));
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (bytes + 4 * 256, bytes + 4 * 256));
        let Kernel::BatchNorm(norm) = kernel.kernel else { panic!("{kernel:?}") };
        assert_eq!((norm.batch, norm.channels, norm.spatial, norm.cudnn), (16, 64, 64, true));
        let lowered = OpSet::standard().lower(&call(false));
        assert_eq!(lowered.kernel().map(crate::KernelCall::bytes_written), Some(bytes));
    }
}
