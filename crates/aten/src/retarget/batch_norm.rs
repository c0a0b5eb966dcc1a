//! Batch norm: by cuDNN where PyTorch asks it, else by PyTorch's own kernels.

use crate::call::{OpCall, Tensor};
use crate::dtype::Dtype;

/// Batches that cuDNN takes, while training and not.
const LARGEST: [i64; 2] = [880_801, 65_535];
/// Some of cuDNN's kernels count elements in 32 bits.
const MOST_ELEMENTS: u64 = i32::MAX as u64;

/// Of `(input, weight, bias, mean, variance, training, momentum, eps, cudnn)`.
pub(super) fn by_cudnn(call: &OpCall) -> bool {
    let training = call.flag(5).unwrap_or(true);
    let statistics = [3, 4].map(|at| call.tensor(at).is_some());
    let known = statistics == [true, true] || (training && statistics == [false, false]);
    known && call.tensor(2).is_some() && call.flag(8) != Some(false) && taken(call, 0, training)
}

/// Of `(gradient, input, weight, mean, variance, saved mean, saved deviation, training, eps, mask)`.
pub(super) fn backward_by_cudnn(call: &OpCall) -> bool {
    call.flag(7).unwrap_or(true) && taken(call, 1, true)
}

/// Whether cuDNN takes an input and the weight after it.
fn taken(call: &OpCall, input: usize, training: bool) -> bool {
    let bf16 = |tensor: &Tensor| tensor.dtype == Dtype::Bf16;
    let (Some(input), Some(weight)) = (call.tensor(input), call.tensor(input + 1)) else { return false };
    let mixed = input.dtype == Dtype::F16 && weight.dtype != Dtype::F32;
    input.shape.len() >= 3
        && input.size(0) <= LARGEST[usize::from(!training)]
        && input.numel() < MOST_ELEMENTS
        && !(bf16(input) || bf16(weight) || mixed)
}
