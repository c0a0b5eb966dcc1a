//! Convolutions: cuDNN's, PyTorch's depthwise and direct ones.

use smallvec::SmallVec;

use crate::call::{Arg, OpCall, Tensor};
use crate::kernel::{Conv, Kernel};
use crate::operands::{count, precision, read, result};
use crate::ops::{Lowered, OpDef};
use crate::work::launches;

/// Convolutions.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::cudnn_convolution"], |call| lower(call, &CUDNN)).outputs(|call| shape(call, &CUDNN)),
    OpDef::leaf(&["aten::cudnn_convolution_transpose"], |call| lower(call, &TRANSPOSED))
        .outputs(|call| shape(call, &TRANSPOSED)),
    OpDef::leaf(&["aten::cudnn_convolution_relu"], |call| lower(call, &RELU))
        .outputs(|call| shape(call, &RELU)),
    OpDef::leaf(&["aten::cudnn_convolution_add_relu"], |call| lower(call, &ADD_RELU))
        .outputs(|call| shape(call, &ADD_RELU)),
    OpDef::leaf(
        &[
            "aten::_conv_depthwise2d",
            "aten::conv_depthwise3d",
            "aten::slow_conv_dilated2d",
            "aten::slow_conv_dilated3d",
        ],
        |call| lower(call, &DIRECT),
    )
    .outputs(|call| shape(call, &DIRECT)),
    OpDef::leaf(&["aten::_slow_conv2d_forward", "aten::slow_conv3d_forward"], |call| lower(call, &DIRECT))
        .outputs(|call| shape(call, &DIRECT)),
    OpDef::composite(&["aten::thnn_conv2d", "aten::slow_conv3d", "aten::convolution_overrideable"]),
];

/// Where the parameters stand among the arguments.
pub(super) struct Form {
    pub(super) bias: Option<usize>,
    pub(super) padding: usize,
    pub(super) output_padding: Option<usize>,
    pub(super) stride: usize,
    pub(super) dilation: usize,
    /// Absent for the direct kernels, where the weight tells.
    pub(super) groups: Option<usize>,
    pub(super) tf32: Option<usize>,
    /// How many arguments there are.
    pub(super) arity: usize,
}

const CUDNN: Form = Form {
    bias: None,
    padding: 2,
    output_padding: None,
    stride: 3,
    dilation: 4,
    groups: Some(5),
    tf32: Some(8),
    arity: 9,
};
const TRANSPOSED: Form = Form {
    output_padding: Some(3),
    stride: 4,
    dilation: 5,
    groups: Some(6),
    tf32: Some(9),
    arity: 10,
    ..CUDNN
};
const RELU: Form = Form {
    bias: Some(2),
    stride: 3,
    padding: 4,
    dilation: 5,
    groups: Some(6),
    tf32: None,
    arity: 7,
    ..CUDNN
};
const ADD_RELU: Form = Form {
    bias: Some(4),
    stride: 5,
    padding: 6,
    dilation: 7,
    groups: Some(8),
    tf32: None,
    arity: 9,
    ..CUDNN
};
const DIRECT: Form =
    Form { bias: Some(3), stride: 4, padding: 5, dilation: 6, groups: None, tf32: None, arity: 7, ..CUDNN };

/// Sizes of one to three dimensions, missing leading ones set to `lead`.
pub(super) fn three(list: &[i64], dims: usize, lead: u64) -> [u64; 3] {
    let mut all = [lead; 3];
    for at in 0..dims.min(3) {
        // A single number stands for all dimensions.
        let value = if list.len() == 1 { list.first() } else { list.get(at) };
        all[3 - dims.min(3) + at] = value.map_or(lead, |&value| count(value));
    }
    all
}

/// The convolution without its output's size.
pub(super) fn geometry(call: &OpCall, form: &Form, input: &Tensor, weight: &Tensor) -> Option<Conv> {
    let dims = input.shape.len().checked_sub(2).filter(|dims| (1..=3).contains(dims))?;
    let list = |arg: usize| call.ints(arg).unwrap_or_default();
    let tf32 = form.tf32.and_then(|arg| call.flag(arg)).unwrap_or(call.settings.conv_tf32);
    let channels_in = count(input.size(1));
    let transposed = form.output_padding.is_some();
    let depth = count(weight.size(1)).max(1);
    let groups = form.groups.and_then(|arg| call.int(arg)).map_or(channels_in / depth, count).max(1);
    Some(Conv {
        gradients: None,
        batch: count(input.size(0)),
        channels_in,
        channels_out: if transposed { depth.saturating_mul(groups) } else { count(weight.size(0)) },
        input: three(&input.shape[2..], dims, 1),
        output: [1; 3],
        filter: three(weight.shape.get(2..)?, dims, 1),
        stride: three(&list(form.stride), dims, 1),
        padding: three(&list(form.padding), dims, 0),
        dilation: three(&list(form.dilation), dims, 1),
        groups,
        transposed,
        channels_last: input.is_channels_last(),
        bias: form.bias.is_some_and(|arg| call.tensor(arg).is_some()),
        dims: dims as u8,
        precision: precision(input.dtype, tf32),
    })
}

/// The output's size along each dimension.
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

fn forward(call: &OpCall, form: &Form) -> Option<(Conv, Tensor)> {
    let (input, weight) = (call.tensor(0)?, call.tensor(1)?);
    let mut conv = geometry(call, form, input, weight)?;
    let extra = form.output_padding.and_then(|arg| call.ints(arg)).unwrap_or_default();
    conv.output = outputs(&conv, three(&extra, conv.dims.into(), 0));
    let mut shape: SmallVec<[i64; 5]> = smallvec::smallvec![input.size(0), conv.channels_out as i64];
    shape.extend(conv.output[3 - usize::from(conv.dims)..].iter().map(|&size| size as i64));
    Some((conv, like(&shape, input)))
}

/// A tensor with its channels where a model has them.
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

fn shape(call: &OpCall, form: &Form) -> Option<Vec<Arg>> {
    forward(call, form).map(|(_, output)| vec![Arg::Tensor(output)])
}

fn lower(call: &OpCall, form: &Form) -> Lowered {
    let (Some((mut conv, computed)), Some(input)) = (forward(call, form), call.tensor(0)) else {
        return crate::fallback::lower(call);
    };
    let (target, output) = result(call, form.arity, computed);
    if output.numel() == 0 {
        return Lowered::Nothing;
    }
    conv.output = three(output.shape.get(2..).unwrap_or_default(), conv.dims.into(), 1);
    let bias = form.bias.and_then(|arg| read(call, arg));
    let added = (form.bias == ADD_RELU.bias).then(|| read(call, 2)).flatten();
    launches(
        count_launches(&conv, form),
        Kernel::Conv(conv),
        input.dtype,
        [read(call, 0), read(call, 1), bias, added, Some(target)],
        multiplications(&conv),
    )
}

/// As recorded of cuDNN on an H200: images with their channels apart are rearranged before and after, but for
/// most convolutions of one element.
fn count_launches(conv: &Conv, form: &Form) -> u32 {
    if form.groups.is_none() || conv.channels_last || conv.dims == 1 || pointwise(conv) { 1 } else { 4 }
}

/// Whether the filter has one element and skips none.
pub(super) fn pointwise(conv: &Conv) -> bool {
    conv.filter == [1; 3] && conv.stride == [1; 3]
}

/// Operations of one pass over all products of input and weight.
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
        let lowered = crate::registry::lower(&call);
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
        let Some(outputs) = crate::registry::outputs(&call) else { panic!() };
        assert!(outputs[0].tensors()[0].is_channels_last());
    }
}
