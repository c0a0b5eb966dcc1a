//! Batch norm: with cuDNN if PyTorch uses it, otherwise with PyTorch's own kernels.

use super::branch::Branch;
use super::build::{around, empty_like, fill, light, op};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::ops::norm_layer::largest_batch;

/// Maximum number of elements for cuDNN, some of whose kernels count in 32 bits.
const MOST_ELEMENTS: u64 = i32::MAX as u64;

/// Returns a batch norm, or its gradient, as computed on the GPU; `None` for any other op.
pub(super) fn rewritten(branch: &Branch) -> Option<Branch> {
    let call = &branch.call;
    match call.name.as_str() {
        "aten::_batch_norm_impl_index" => {
            let norm = branch.children.iter().find(|child| child.name() == "aten::native_batch_norm")?;
            Some(Branch { children: chosen(call, norm.clone()), ..branch.clone() })
        }
        "aten::native_batch_norm_backward" => Some(gradient(branch.clone())),
        _ => None,
    }
}

/// Returns the ops called by the choice of an implementation.
fn chosen(call: &OpCall, mut norm: Branch) -> Vec<Branch> {
    let empty = || light("empty");
    if by_cudnn(call) {
        norm.call.name = "aten::cudnn_batch_norm".into();
        norm.children = vec![empty_like(), empty(), empty(), light("view"), empty(), empty()];
        return vec![norm];
    }
    norm.children = vec![around("empty_like", vec![light("empty_strided")]), empty(), empty()];
    norm.children.extend(semaphores(call.tensor_at(0)));
    vec![empty(), norm]
}

fn gradient(mut branch: Branch) -> Branch {
    let empty = || light("empty");
    if !backward_by_cudnn(&branch.call) {
        branch.children = vec![empty(); 4];
        branch.children.extend(semaphores(branch.call.tensor_at(1)));
        branch.children.push(around("empty_like", vec![light("empty_strided")]));
        return branch;
    }
    branch.call.name = "aten::cudnn_batch_norm_backward".into();
    // The arguments input and gradient are exchanged.
    if branch.call.inputs.len() > 1 {
        branch.call.inputs.swap(0, 1);
    }
    branch.children = vec![empty(), empty(), empty(), light("view"), empty()];
    branch
}

/// Whether cuDNN computes `(input, weight, bias, mean, variance, training, momentum, eps, cudnn)`.
fn by_cudnn(call: &OpCall) -> bool {
    let training = call.flag_at(5).unwrap_or(true);
    let statistics = [3, 4].map(|at| call.tensor_at(at).is_some());
    let known = statistics == [true, true] || (training && statistics == [false, false]);
    known && call.tensor_at(2).is_some() && call.flag_at(8) != Some(false) && taken(call, 0, training)
}

/// Whether cuDNN computes `(gradient, input, weight, mean, variance, saved mean, saved deviation, training, eps, mask)`.
fn backward_by_cudnn(call: &OpCall) -> bool {
    call.flag_at(7).unwrap_or(true) && taken(call, 1, true)
}

/// Maximum threads of a block along channels and in total, and elements summed per thread.
const WIDEST: u64 = 32;
const THREADS: u64 = 512;
const EACH: u64 = 16;
/// Minimum number of blocks along a column that combine their sums in memory.
const FEWEST_BLOCKS: u64 = 8;

/// Returns the op that clears the counters with which blocks combine their sums. They exist if channels are adjacent in memory
/// and columns are long.
fn semaphores(input: Option<&Tensor>) -> Option<Branch> {
    let rows = |input: &Tensor| input.shape.len() == 2 && input.is_contiguous() || input.is_channels_last();
    let input = input.filter(|input| rows(input))?;
    let channels = u64::try_from(input.size(1)).unwrap_or(0).max(1);
    let column = input.numel() / channels;
    let power = |most: u64| 1u64 << most.max(1).ilog2();
    let narrow = power(channels).min(WIDEST);
    let down = power(column.div_ceil(EACH)).min(THREADS / narrow);
    let across = if narrow * down == THREADS { narrow } else { power(channels).min(THREADS / down) };
    (column.div_ceil(down * EACH) >= FEWEST_BLOCKS).then(|| {
        let counters = Tensor::contiguous(&[channels.div_ceil(across) as i64], Dtype::I32);
        let mut zero = op("zero_", vec![Arg::Tensor(counters.clone())], Some(counters.clone()));
        zero.children = vec![fill(&counters)];
        around("zeros", vec![light("empty"), zero])
    })
}

/// Whether cuDNN supports an input and the weight after it.
fn taken(call: &OpCall, input: usize, training: bool) -> bool {
    let bf16 = |tensor: &Tensor| tensor.dtype == Dtype::Bf16;
    let (Some(input), Some(weight)) = (call.tensor_at(input), call.tensor_at(input + 1)) else {
        return false;
    };
    let mixed = input.dtype == Dtype::F16 && weight.dtype != Dtype::F32;
    input.shape.len() >= 3
        && input.size(0) <= largest_batch(training)
        && input.numel() < MOST_ELEMENTS
        && !(bf16(input) || bf16(weight) || mixed)
}
