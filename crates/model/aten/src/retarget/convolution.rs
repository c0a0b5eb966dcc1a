//! Convolutions with cuDNN.

use super::branch::Branch;
use super::build::{around, dense, light, op};
use crate::call::{Arg, OpCall, Tensor};
use crate::kernel::Conv;
use crate::operands::count;

/// Returns the ops that `_convolution` calls, given `(input, weight, bias, stride, padding, dilation, transposed, output_padding,
/// groups, benchmark, deterministic, cudnn_enabled, allow_tf32)`: a separate op adds the bias.
pub(super) fn forward(call: &OpCall) -> Vec<Branch> {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let (Some(input), Some(weight)) = (call.tensor_at(0), call.tensor_at(1)) else { return Vec::new() };
    let groups = call.int_at(8).unwrap_or(1);
    let transposed = call.flag_at(6).unwrap_or(false);
    let depthwise = !transposed
        && Conv::is_depthwise(count(groups), count(input.size(1)))
        && weight.size(0) % input.size(1).max(1) == 0
        && matches!(input.shape.len(), 4 | 5);
    let output = call.output(0).cloned();
    let kernel = weight.shape.get(2..).unwrap_or(&[]).into();
    if depthwise {
        let name = if input.shape.len() == 5 { "conv_depthwise3d" } else { "_conv_depthwise2d" };
        let inputs = vec![arg(0), arg(1), Arg::Ints(kernel), arg(2), arg(3), arg(4), arg(5)];
        let mut convolve = op(name, inputs, output);
        convolve.children = vec![light("empty"), light("resize_")];
        return vec![convolve];
    }
    let switches = [Arg::Bool(false), Arg::Bool(false), Arg::Bool(call.flag_at(12).unwrap_or(true))];
    let (name, mut inputs) = if transposed {
        ("cudnn_convolution_transpose", vec![arg(0), arg(1), arg(4), arg(7), arg(3), arg(5), arg(8)])
    } else {
        ("cudnn_convolution", vec![arg(0), arg(1), arg(4), arg(3), arg(5), arg(8)])
    };
    inputs.extend(switches);
    let order = order(input, weight);
    let mut children: Vec<Branch> = ordered(input, order).into_iter().collect();
    children.push(op(name, inputs, output.clone()));
    if let (Some(bias), Some(output)) = (call.tensor_at(2), output) {
        let mut shape = vec![1i64; output.shape.len()];
        if let Some(channels) = shape.get_mut(1) {
            *channels = bias.size(0);
        }
        let bias = Tensor::contiguous(&shape, bias.dtype);
        children.push(around("reshape", vec![light("view")]));
        let inputs = vec![Arg::Tensor(output.clone()), Arg::Tensor(bias), Arg::Int(1)];
        children.push(op("add_", inputs, Some(output)));
    }
    children
}

/// Whether cuDNN computes with channels last: it does if the input or the filter has them.
fn order(input: &Tensor, weight: &Tensor) -> bool {
    input.is_channels_last() || weight.is_channels_last()
}

/// Returns a copy of a tensor in the order in which cuDNN computes, if it is in another.
fn ordered(tensor: &Tensor, channels_last: bool) -> Option<Branch> {
    let mut strides = Tensor::contiguous(&tensor.shape, tensor.dtype).strides;
    if let (true, Some((&channels, space))) =
        (channels_last, tensor.shape.get(1..).and_then(|s| s.split_first()))
    {
        let mut pixel = channels.max(1);
        for (stride, &size) in strides.iter_mut().skip(2).zip(space).rev() {
            *stride = pixel;
            pixel = pixel.saturating_mul(size.max(1));
        }
        strides[1] = 1;
    }
    let placed = |(&own, (&wanted, &size)): (&i64, (&i64, &i64))| size == 1 || own == wanted;
    let same = tensor.strides.iter().zip(strides.iter().zip(&tensor.shape)).all(placed);
    let copied = !same && !tensor.is_sparse() && tensor.numel() > 0;
    copied.then(|| around("contiguous", vec![dense(tensor, &strides)]))
}

/// Returns the ops that `convolution_backward` calls besides cuDNN: the gradient of the bias is a sum.
pub(super) fn backward(call: &OpCall) -> Vec<Branch> {
    let depthwise = call.int_at(9).zip(call.tensor_at(1));
    let depthwise =
        depthwise.is_some_and(|(groups, input)| Conv::is_depthwise(count(groups), count(input.size(1))));
    let mut children = if depthwise {
        vec![light("empty"), light("empty"), light("resize_"), light("resize_")]
    } else if let (Some(grad), Some(input), Some(weight)) =
        (call.tensor_at(0), call.tensor_at(1), call.tensor_at(2))
    {
        let copied = [grad, input].into_iter().filter_map(|tensor| ordered(tensor, order(input, weight)));
        copied.chain([light("to"), light("empty")]).collect()
    } else {
        vec![light("to"), light("empty")]
    };
    let bias = call.ints_at(10).is_some_and(|mask| mask.get(2).is_some_and(|&wanted| wanted != 0));
    if let (true, Some(grad)) = (bias, call.tensor_at(0)) {
        let dims = (0..grad.shape.len() as i64).filter(|&dim| dim != 1).collect();
        let inputs = vec![Arg::Tensor(grad.clone()), Arg::Ints(dims), Arg::Bool(false), Arg::None];
        let sum = Tensor::contiguous(&[grad.size(1)], grad.dtype);
        children.push(op("sum", inputs, Some(sum)));
    }
    children
}
