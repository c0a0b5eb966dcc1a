//! Resampling of images to another size.

use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, Tensor};
use crate::kernel::{Kernel, Pass, Pool, PoolKind};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, output, read};

/// Definitions of resampling.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(
        &[
            "aten::upsample_nearest1d",
            "aten::upsample_nearest2d",
            "aten::upsample_nearest3d",
            "aten::_upsample_nearest_exact1d",
            "aten::_upsample_nearest_exact2d",
            "aten::_upsample_nearest_exact3d",
        ],
        |call| forward(call, 1),
    )
    .outputs(shape),
    OpDef::leaf(
        &["aten::upsample_linear1d", "aten::upsample_bilinear2d", "aten::upsample_trilinear3d"],
        |call| forward(call, 2),
    )
    .outputs(shape),
    OpDef::leaf(&["aten::upsample_bicubic2d"], |call| forward(call, 4)).outputs(shape),
    OpDef::leaf(
        &[
            "aten::upsample_nearest1d_backward",
            "aten::upsample_nearest2d_backward",
            "aten::upsample_nearest3d_backward",
            "aten::_upsample_nearest_exact1d_backward",
            "aten::_upsample_nearest_exact2d_backward",
            "aten::_upsample_nearest_exact3d_backward",
        ],
        |call| backward(call, 1),
    )
    .outputs(shape_backward),
    OpDef::leaf(
        &[
            "aten::upsample_linear1d_backward",
            "aten::upsample_bilinear2d_backward",
            "aten::upsample_trilinear3d_backward",
        ],
        |call| backward(call, 2),
    )
    .outputs(shape_backward),
    OpDef::leaf(&["aten::upsample_bicubic2d_backward"], |call| backward(call, 4)).outputs(shape_backward),
];

/// Returns the result: batch and channels of the input, and the requested size.
fn resized(call: &BoundCall<'_>) -> Option<Tensor> {
    let input = call.tensor("self")?;
    let sizes = call.ints("output_size")?;
    let kept = input.shape.len().checked_sub(sizes.len())?;
    let shape: Vec<i64> = input.shape[..kept].iter().chain(&sizes).copied().collect();
    Some(Tensor::contiguous(&shape, input.dtype))
}

fn shape(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    Some(vec![Arg::Tensor(resized(call)?)])
}

/// Returns the gradient, which has the input's size, the third argument.
fn shape_backward(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    Some(vec![Arg::Tensor(Tensor::contiguous(&call.ints("input_size")?, call.tensor("grad_output")?.dtype))])
}

/// Returns height and width; depth counts with the planes.
fn area(tensor: &Tensor) -> [u64; 2] {
    [if tensor.shape.len() > 3 { count(tensor.size(-2)) } else { 1 }, count(tensor.size(-1))]
}

/// Returns the kernel in which each element is computed from `taps` elements along each dimension.
fn kernel(pass: Pass, small: &Tensor, large: &Tensor, taps: u64) -> Kernel {
    let (input, output) = (area(small), area(large));
    Kernel::Pool(Pool {
        kind: PoolKind::Resample,
        pass,
        planes: small.numel() / (input[0] * input[1]).max(1),
        input,
        output,
        window: [taps; 2],
        stride: [1; 2],
        channels_last: small.is_channels_last(),
    })
}

fn forward(call: &BoundCall<'_>, taps: u64) -> Option<Lowering> {
    let (Some(input), Some(result)) = (call.tensor("self"), resized(call)) else {
        return None;
    };
    if result.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let flops = result.numel().saturating_mul(2 * taps * taps);
    let kernel = kernel(Pass::Forward, input, &result, taps);
    Some(work(kernel, input.dtype, [read(call, "self"), Some(output(0, &result))], flops))
}

fn backward(call: &BoundCall<'_>, taps: u64) -> Option<Lowering> {
    let result =
        shape_backward(call).and_then(|all| all.first().and_then(|arg| arg.tensors().first().cloned()));
    let (Some(grad), Some(result)) = (call.tensor("grad_output"), result) else { return None };
    if grad.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let flops = grad.numel().saturating_mul(2 * taps * taps);
    let kernel = kernel(Pass::Backward, &result, grad, taps);
    Some(work(kernel, grad.dtype, [read(call, "grad_output"), Some(output(0, &result))], flops))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::call::OpCall;

    #[test]
    fn twice_as_high_and_wide() {
        let input = Arg::Tensor(Tensor::contiguous(&[2, 3, 8, 8], F32));
        let size = Arg::Ints([16, 16].as_slice().into());
        let call = OpCall::new("aten::upsample_bilinear2d", vec![input, size, Arg::Bool(false)]);
        let lowered = OpSet::standard().lower(&call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        let Kernel::Pool(pool) = kernel.kernel else { panic!("{kernel:?}") };
        assert_eq!((pool.planes, pool.input, pool.output, pool.window), (6, [8, 8], [16, 16], [2, 2]));
        assert_eq!(kernel.bytes_written(), 6 * 256 * 4);
    }
}
