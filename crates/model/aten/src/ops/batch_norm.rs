//! Batch norm, by cuDNN and by PyTorch's own kernels.

use crate::call::{Arg, OpCall, Tensor};
use crate::child::{child, gradient, ints};
use crate::dtype::Dtype;
use crate::kernel::{BatchNorm, Kernel, Operand, Pass};
use crate::operands::{count, output_bytes, read, update};
use crate::ops::{Lowered, OpDef};
use crate::work::work;

/// Batch norm.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::cudnn_batch_norm"], |call| forward(call, 5, true)).outputs(shape).backward(|call| {
        let grad = gradient(call).map_or(Arg::None, Arg::Tensor);
        let reserve = saved(call, 3);
        let inputs = vec![given(call, 0), grad, given(call, 1), given(call, 3), given(call, 4)];
        let rest = [saved(call, 1), saved(call, 2), given(call, 7), reserve];
        vec![child(call, "aten::cudnn_batch_norm_backward", inputs.into_iter().chain(rest).collect())]
    }),
    OpDef::leaf(&["aten::native_batch_norm", "aten::_native_batch_norm_legit"], |call| {
        forward(call, 5, false)
    })
    .outputs(shape)
    .backward(|call| {
        let grad = gradient(call).map_or(Arg::None, Arg::Tensor);
        let inputs = vec![grad, given(call, 0), given(call, 1), given(call, 3), given(call, 4)];
        let rest = [saved(call, 1), saved(call, 2), given(call, 5), given(call, 7), ints(&[1, 1, 1])];
        vec![child(call, "aten::native_batch_norm_backward", inputs.into_iter().chain(rest).collect())]
    }),
    OpDef::leaf(&["aten::_batch_norm_with_update"], |call| forward(call, usize::MAX, false)).outputs(shape),
    OpDef::leaf(&["aten::cudnn_batch_norm_backward"], |call| backward(call, &CUDNN))
        .outputs(shape_backward_cudnn),
    OpDef::leaf(&["aten::native_batch_norm_backward", "aten::batch_norm_backward"], |call| {
        backward(call, &NATIVE)
    })
    .outputs(shape_backward_native),
];

/// The type of statistics.
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

/// Statistics of a channel: a mean, and a deviation.
fn statistics(input: &Tensor) -> u64 {
    count(input.size(1)).saturating_mul(STATISTICS.size())
}

fn given(call: &OpCall, arg: usize) -> Arg {
    call.inputs.get(arg).cloned().unwrap_or_default()
}

/// A result of the forward pass that the backward pass takes.
fn saved(call: &OpCall, ret: usize) -> Arg {
    crate::registry::outputs(call).and_then(|all| all.get(ret).cloned()).unwrap_or_default()
}

fn like(model: &Tensor) -> Tensor {
    Tensor { offset: 0, ..model.clone() }
}

fn shape(call: &OpCall) -> Option<Vec<Arg>> {
    let input = call.tensor(0)?;
    let saved = || Arg::Tensor(Tensor::contiguous(&[input.size(1)], STATISTICS));
    let reserve = Arg::Tensor(Tensor::contiguous(&[0], Dtype::I8));
    let mut all = vec![Arg::Tensor(like(input)), saved(), saved()];
    if call.name == "aten::cudnn_batch_norm" || call.name == "aten::_batch_norm_with_update" {
        all.push(reserve);
    }
    Some(all)
}

/// Takes (input, weight, bias, running mean, running variance); `training` is an argument, or always so.
fn forward(call: &OpCall, training: usize, cudnn: bool) -> Lowered {
    let Some(input) = call.tensor(0) else { return crate::fallback::lower(call) };
    if input.numel() == 0 {
        return Lowered::Nothing;
    }
    let training = call.flag(training).unwrap_or(true);
    let running = |arg| if training { update(call, arg) } else { read(call, arg) };
    let kept = |ret| training.then(|| output_bytes(ret, statistics(input)));
    let operands = [
        read(call, 0),
        read(call, 1),
        read(call, 2),
        running(3),
        running(4),
        Some(output_bytes(0, input.bytes())),
        kept(1),
        kept(2),
    ];
    let flops = input.numel().saturating_mul(if training { 5 } else { 2 });
    work(kernel(input, Pass::Forward, training, cudnn), input.dtype, operands, flops)
}

/// Where the arguments of a gradient stand.
struct Form {
    input: usize,
    gradient: usize,
    training: Option<usize>,
    mask: Option<usize>,
    cudnn: bool,
}

const CUDNN: Form = Form { input: 0, gradient: 1, training: None, mask: None, cudnn: true };
const NATIVE: Form = Form { input: 1, gradient: 0, training: Some(7), mask: Some(9), cudnn: false };

fn shape_backward(call: &OpCall, form: &Form) -> Option<Vec<Arg>> {
    let input = call.tensor(form.input)?;
    let affine = || Arg::Tensor(Tensor::contiguous(&[input.size(1)], STATISTICS));
    Some(vec![Arg::Tensor(like(input)), affine(), affine()])
}

fn shape_backward_cudnn(call: &OpCall) -> Option<Vec<Arg>> {
    shape_backward(call, &CUDNN)
}

fn shape_backward_native(call: &OpCall) -> Option<Vec<Arg>> {
    shape_backward(call, &NATIVE)
}

fn backward(call: &OpCall, form: &Form) -> Lowered {
    let Some(input) = call.tensor(form.input) else { return crate::fallback::lower(call) };
    if input.numel() == 0 {
        return Lowered::Nothing;
    }
    let training = form.training.and_then(|arg| call.flag(arg)).unwrap_or(true);
    let mask = form.mask.and_then(|arg| call.ints(arg));
    let asked = |ret: usize| mask.as_ref().and_then(|mask| mask.get(ret)).is_none_or(|&flag| flag != 0);
    let gradient = |ret: usize, bytes| asked(ret).then(|| output_bytes(ret as u16, bytes));
    let saved: [Option<Operand>; 2] = [5, 6].map(|arg| read(call, arg));
    let operands = [
        read(call, form.gradient),
        read(call, form.input),
        read(call, 2),
        saved[0],
        saved[1],
        gradient(0, input.bytes()),
        gradient(1, statistics(input)),
        gradient(2, statistics(input)),
    ];
    work(
        kernel(input, Pass::Backward, training, form.cudnn),
        input.dtype,
        operands,
        input.numel().saturating_mul(8),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;

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
        let lowered = crate::registry::lower(&call(true));
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (bytes + 4 * 256, bytes + 4 * 256));
        let Kernel::BatchNorm(norm) = kernel.kernel else { panic!("{kernel:?}") };
        assert_eq!((norm.batch, norm.channels, norm.spatial, norm.cudnn), (16, 64, 64, true));
        let lowered = crate::registry::lower(&call(false));
        assert_eq!(lowered.kernel().map(crate::KernelCall::bytes_written), Some(bytes));
    }
}
