//! Convolutions: cuDNN's, and PyTorch's depthwise and direct ones.

use smallvec::SmallVec;

use crate::bound_call::BoundCall;
use crate::build_lowering::launches;
use crate::call::{Arg, Tensor};
use crate::kernel::{Conv, Kernel};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, precision, read, result};

/// Definitions of convolutions.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::cudnn_convolution"], |call| lower(call, 9)).outputs(shape),
    OpDef::leaf(&["aten::cudnn_convolution_transpose"], |call| lower(call, 10)).outputs(shape),
    OpDef::leaf(&["aten::cudnn_convolution_relu"], |call| lower(call, 7)).outputs(shape),
    OpDef::leaf(&["aten::cudnn_convolution_add_relu"], |call| lower(call, 9)).outputs(shape),
    OpDef::leaf(
        &[
            "aten::_conv_depthwise2d",
            "aten::conv_depthwise3d",
            "aten::slow_conv_dilated2d",
            "aten::slow_conv_dilated3d",
            "aten::_slow_conv2d_forward",
            "aten::slow_conv3d_forward",
        ],
        |call| lower(call, 7),
    )
    .outputs(shape),
    OpDef::composite(&["aten::thnn_conv2d", "aten::slow_conv3d", "aten::convolution_overrideable"]),
];

/// Sizes per dimension, or a single one for all.
pub(super) type Sizes = SmallVec<[i64; 4]>;

/// Arguments of a convolution besides its tensors.
pub(super) struct Parameters {
    pub(super) stride: Sizes,
    pub(super) padding: Sizes,
    pub(super) dilation: Sizes,
    /// Only for a transposed convolution.
    pub(super) output_padding: Option<Sizes>,
    /// Absent for the direct kernels, where the weight determines it.
    pub(super) groups: Option<i64>,
    pub(super) tf32: bool,
}

impl Parameters {
    /// Returns the parameters of a call.
    pub(super) fn from_call(call: &BoundCall<'_>) -> Parameters {
        let list = |name| if call.has(name) { call.ints(name).unwrap_or_default() } else { Sizes::new() };
        let padded = call.has("output_padding");
        let transposed = if call.has("transposed") { call.flag("transposed") == Some(true) } else { padded };
        let tf32 = if call.has("allow_tf32") { call.flag("allow_tf32") } else { None };
        Parameters {
            stride: list("stride"),
            padding: list("padding"),
            dilation: list("dilation"),
            output_padding: transposed.then(|| list("output_padding")),
            groups: if call.has("groups") { call.int("groups") } else { None },
            tf32: tf32.unwrap_or(call.settings.conv_tf32),
        }
    }
}

/// Returns sizes of one to three dimensions as three, with missing leading ones set to `lead`.
pub(super) fn three(list: &[i64], dims: usize, lead: u64) -> [u64; 3] {
    let mut all = [lead; 3];
    for at in 0..dims.min(3) {
        // A single number applies to all dimensions.
        let value = if list.len() == 1 { list.first() } else { list.get(at) };
        all[3 - dims.min(3) + at] = value.map_or(lead, |&value| count(value));
    }
    all
}

/// Returns the convolution without its output size, and without a bias.
pub(super) fn geometry(parameters: &Parameters, input: &Tensor, weight: &Tensor) -> Option<Conv> {
    let dims = input.shape.len().checked_sub(2).filter(|dims| (1..=3).contains(dims))?;
    let channels_in = count(input.size(1));
    let transposed = parameters.output_padding.is_some();
    let depth = count(weight.size(1)).max(1);
    let groups = parameters.groups.map_or(channels_in / depth, count).max(1);
    Some(Conv {
        gradients: None,
        batch: count(input.size(0)),
        channels_in,
        channels_out: if transposed { depth.saturating_mul(groups) } else { count(weight.size(0)) },
        input: three(&input.shape[2..], dims, 1),
        output: [1; 3],
        filter: three(weight.shape.get(2..)?, dims, 1),
        stride: three(&parameters.stride, dims, 1),
        padding: three(&parameters.padding, dims, 0),
        dilation: three(&parameters.dilation, dims, 1),
        groups,
        transposed,
        channels_last: input.is_channels_last(),
        bias: false,
        dims: dims as u8,
        precision: precision(input.dtype, parameters.tf32),
    })
}

/// Returns the output size along each dimension.
fn outputs(conv: &Conv, extra: [u64; 3]) -> [u64; 3] {
    std::array::from_fn(|at| {
        let window = conv.dilation[at].saturating_mul(conv.filter[at].max(1) - 1).saturating_add(1);
        let padding = conv.padding[at].saturating_mul(2);
        if conv.transposed {
            let strided = (conv.input[at].max(1) - 1).saturating_mul(conv.stride[at]);
            return strided.saturating_add(window).saturating_add(extra[at]).saturating_sub(padding);
        }
        let padded = conv.input[at].saturating_add(padding);
        padded.checked_sub(window).map_or(0, |room| room / conv.stride[at].max(1) + 1)
    })
}

/// Returns the convolution of two tensors, and its result.
pub(super) fn forward(parameters: &Parameters, input: &Tensor, weight: &Tensor) -> Option<(Conv, Tensor)> {
    let mut conv = geometry(parameters, input, weight)?;
    let extra = parameters.output_padding.as_deref().unwrap_or_default();
    conv.output = outputs(&conv, three(extra, conv.dims.into(), 0));
    let mut shape: SmallVec<[i64; 5]> = smallvec::smallvec![input.size(0), conv.channels_out as i64];
    shape.extend(conv.output[3 - usize::from(conv.dims)..].iter().map(|&size| size as i64));
    Some((conv, like(&shape, input)))
}

/// Returns a tensor with its channels in the same position as those of a model.
pub(super) fn like(shape: &[i64], model: &Tensor) -> Tensor {
    let mut tensor = Tensor::contiguous(shape, model.dtype);
    if model.is_channels_last() {
        let mut stride = 1;
        for dim in std::iter::once(1).chain((2..shape.len()).rev()).chain([0]) {
            tensor.strides[dim] = stride;
            stride *= shape[dim].max(1);
        }
    }
    tensor
}

fn shape(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let (_, output) = forward(&Parameters::from_call(call), call.tensor("self")?, call.tensor("weight")?)?;
    Some(vec![Arg::Tensor(output)])
}

/// Returns the launches of a convolution with `arity` arguments; an additional one is the tensor to write.
fn lower(call: &BoundCall<'_>, arity: usize) -> Option<Lowering> {
    let (input, parameters) = (call.tensor("self")?, Parameters::from_call(call));
    let (mut conv, computed) = forward(&parameters, input, call.tensor("weight")?)?;
    conv.bias = call.has("bias") && call.tensor("bias").is_some();
    let (target, output) = result(call, arity, computed);
    if output.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    conv.output = three(output.shape.get(2..).unwrap_or_default(), conv.dims.into(), 1);
    let bias = if call.has("bias") { read(call, "bias") } else { None };
    let added = if call.has("z") { read(call, "z") } else { None };
    let direct = parameters.groups.is_none() && !call.has("groups");
    Some(launches(
        count_launches(&conv, direct),
        Kernel::Conv(conv),
        input.dtype,
        [read(call, "self"), read(call, "weight"), bias, added, Some(target)],
        multiplications(&conv),
    ))
}

/// Returns the number of launches as recorded with cuDNN on an H200: images without channels last are rearranged before and after, except for
/// most convolutions with a filter of one element.
fn count_launches(conv: &Conv, direct: bool) -> u32 {
    if direct || conv.channels_last || conv.dims == 1 || pointwise(conv) { 1 } else { 4 }
}

/// Whether the filter has one element and skips none.
pub(super) fn pointwise(conv: &Conv) -> bool {
    conv.filter == [1; 3] && conv.stride == [1; 3]
}

/// Returns the operations of one pass over all products of input and weight.
pub(super) fn multiplications(conv: &Conv) -> u64 {
    let moved = if conv.transposed { conv.input } else { conv.output };
    let places =
        moved.iter().chain(&conv.filter).fold(2 * conv.batch, |n: u64, &size| n.saturating_mul(size));
    places.saturating_mul(conv.channels_in / conv.groups).saturating_mul(conv.channels_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::{Bf16, F32};
    use crate::OpSet;
    use crate::call::OpCall;
    use crate::kernel::Precision;

    fn ints(list: &[i64]) -> Arg {
        Arg::Ints(list.into())
    }

    fn call(input: Tensor, weight: &[i64], stride: i64, padding: i64) -> OpCall {
        let weight = Arg::Tensor(Tensor::contiguous(weight, input.dtype));
        let (padding, stride, dilation) = (ints(&[padding; 2]), ints(&[stride; 2]), ints(&[1, 1]));
        let flags = [Arg::Int(1), Arg::Bool(false), Arg::Bool(false), Arg::Bool(true)];
        let inputs = [Arg::Tensor(input), weight, padding, stride, dilation].into_iter().chain(flags);
        OpCall::new("aten::cudnn_convolution", inputs.collect())
    }

    #[test]
    fn the_first_layer_of_resnet() {
        let call = call(Tensor::contiguous(&[16, 3, 224, 224], F32), &[64, 3, 7, 7], 2, 3);
        let lowered = OpSet::standard().lower(&call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        let Kernel::Conv(conv) = kernel.kernel else { panic!("{kernel:?}") };
        assert_eq!((conv.output, conv.filter, conv.dims), ([1, 112, 112], [1, 7, 7], 2));
        assert_eq!((conv.precision, conv.gradients, conv.groups), (Precision::Tf32, None, 1));
        assert_eq!(kernel.flops, 2 * 16 * 64 * 112 * 112 * 3 * 49);
        assert_eq!(kernel.bytes_written(), 16 * 64 * 112 * 112 * 4);
    }

    #[test]
    fn channels_last_stays_channels_last() {
        let input = Tensor::strided(&[2, 8, 6, 6], &[288, 1, 48, 8], Bf16);
        let call = call(input, &[4, 8, 1, 1], 1, 0);
        let Some(outputs) = OpSet::standard().outputs(&call) else { panic!() };
        assert!(outputs[0].tensors()[0].is_channels_last());
    }
}
