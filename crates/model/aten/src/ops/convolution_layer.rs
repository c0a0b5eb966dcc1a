//! Convolutions as users call them: which implementation is chosen.

use crate::call::{Arg, Device, OpCall, Tensor};
use crate::child::{child, ints, unsqueeze};
use crate::dtype::Dtype;
use crate::ops::OpDef;

/// Convolution layers.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::conv1d", "aten::conv2d", "aten::conv3d"]).expand(layer),
    OpDef::composite(&["aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d"])
        .expand(layer_transposed),
    OpDef::composite(&["aten::convolution"])
        .expand(|call| {
            let flags =
                [Arg::Bool(false), Arg::Bool(false), Arg::Bool(true), Arg::Bool(call.settings.conv_tf32)];
            vec![child(call, "aten::_convolution", call.inputs.iter().cloned().chain(flags).collect())]
        })
        .backward(backward),
    OpDef::composite(&["aten::_convolution"]).expand(chosen),
];

/// One number for each dimension; `same` and `valid` paddings by the filter.
fn parameter(call: &OpCall, arg: usize, dims: usize, missing: i64) -> Arg {
    if let Some(Arg::Text(text)) = call.inputs.get(arg) {
        let filter = call.tensor(1).map(|weight| weight.shape.iter().skip(2).copied().collect::<Vec<_>>());
        let same = filter.unwrap_or_default().iter().map(|&size| (size - 1) / 2).collect::<Vec<_>>();
        return ints(&if text == "same" { same } else { vec![0; dims] });
    }
    match call.ints(arg) {
        Some(list) if list.len() == dims => ints(&list),
        Some(list) if list.len() == 1 => ints(&vec![list[0]; dims]),
        _ => ints(&vec![missing; dims]),
    }
}

/// Takes (input, weight, bias, stride, padding, dilation, groups).
fn layer(call: &OpCall) -> Vec<OpCall> {
    let Some(dims) = call.tensor(1).and_then(|weight| weight.shape.len().checked_sub(2)) else {
        return Vec::new();
    };
    let given = |arg: usize| call.inputs.get(arg).cloned().unwrap_or_default();
    let inputs = vec![
        given(0),
        given(1),
        given(2),
        parameter(call, 3, dims, 1),
        parameter(call, 4, dims, 0),
        parameter(call, 5, dims, 1),
        Arg::Bool(false),
        ints(&vec![0; dims]),
        Arg::Int(call.int(6).unwrap_or(1)),
    ];
    vec![child(call, "aten::convolution", inputs)]
}

/// Takes (input, weight, bias, stride, padding, output padding, groups, dilation).
fn layer_transposed(call: &OpCall) -> Vec<OpCall> {
    let Some(dims) = call.tensor(1).and_then(|weight| weight.shape.len().checked_sub(2)) else {
        return Vec::new();
    };
    let given = |arg: usize| call.inputs.get(arg).cloned().unwrap_or_default();
    let inputs = vec![
        given(0),
        given(1),
        given(2),
        parameter(call, 3, dims, 1),
        parameter(call, 4, dims, 0),
        parameter(call, 7, dims, 1),
        Arg::Bool(true),
        parameter(call, 5, dims, 0),
        Arg::Int(call.int(6).unwrap_or(1)),
    ];
    vec![child(call, "aten::convolution", inputs)]
}

/// Whether PyTorch's own depthwise kernel is taken: each channel by itself, channels apart, 32-bit floats.
fn depthwise(input: &Tensor, weight: &Tensor, groups: i64) -> bool {
    let own = groups == input.size(1) && groups > 1 && weight.size(0) % groups == 0;
    own && input.shape.len() == 4 && !input.is_channels_last() && input.dtype == Dtype::F32
}

/// A parameter with a leading dimension that a 1-d convolution is given.
fn widened(call: &OpCall, arg: usize, lead: i64, widen: bool) -> Arg {
    let list = call.ints(arg).unwrap_or_default();
    ints(&if widen { std::iter::once(lead).chain(list).collect::<Vec<_>>() } else { list.to_vec() })
}

fn chosen(call: &OpCall) -> Vec<OpCall> {
    let (Some(input), Some(weight)) = (call.tensor(0), call.tensor(1)) else { return Vec::new() };
    if input.device == Device::Cpu || input.is_sparse() || weight.is_sparse() {
        return Vec::new();
    }
    let widen = input.shape.len() == 3;
    let view = |tensor: &Tensor| if widen { unsqueeze(tensor, 2) } else { tensor.clone() };
    let (input, weight) = (view(input), view(weight));
    let [stride, padding, dilation] =
        [(3, 1), (4, 0), (5, 1)].map(|(arg, lead)| widened(call, arg, lead, widen));
    let transposed = call.flag(6).unwrap_or(false);
    let groups = call.int(8).unwrap_or(1);
    let bias = call.inputs.get(2).cloned().unwrap_or_default();
    let filter = ints(weight.shape.get(2..).unwrap_or_default());
    let direct = !transposed && depthwise(&input, &weight, groups);
    let tensors = [Arg::Tensor(input), Arg::Tensor(weight)];
    if direct {
        let rest = [filter, bias, stride, padding, dilation];
        return vec![child(call, "aten::_conv_depthwise2d", tensors.into_iter().chain(rest).collect())];
    }
    let tf32 = call.flag(12).unwrap_or(call.settings.conv_tf32);
    let flags = [Arg::Int(groups), Arg::Bool(false), Arg::Bool(false), Arg::Bool(tf32)];
    let (name, padding) = if transposed {
        ("aten::cudnn_convolution_transpose", vec![padding, widened(call, 7, 0, widen)])
    } else {
        ("aten::cudnn_convolution", vec![padding])
    };
    let rest = padding.into_iter().chain([stride, dilation]).chain(flags);
    let product = child(call, name, tensors.into_iter().chain(rest).collect());
    let added = added_bias(call, &product, &bias);
    std::iter::once(product).chain(added).collect()
}

/// Gradients of all three. Takes (input, weight, bias, stride, padding, dilation, transposed, output padding,
/// groups).
fn backward(call: &OpCall) -> Vec<OpCall> {
    let output =
        chosen(call).first().and_then(crate::registry::outputs).and_then(|all| all.into_iter().next());
    let (Some(output), Some(weight)) = (output, call.tensor(1)) else { return Vec::new() };
    let given = |arg: usize| call.inputs.get(arg).cloned().unwrap_or_default();
    let bias = call.tensor(2).map(|bias| ints(&bias.shape));
    let mask = ints(&[1, 1, i64::from(bias.is_some())]);
    // A 1-d convolution's result was widened.
    let gradient = match &output {
        Arg::Tensor(wide) if wide.shape.len() > weight.shape.len() => {
            Arg::Tensor(Tensor::contiguous(&[wide.size(0), wide.size(1), wide.size(3)], wide.dtype))
        }
        other => other.clone(),
    };
    let tensors = [gradient, given(0), given(1), bias.unwrap_or_default()].into_iter();
    let inputs = tensors.chain((3..9).map(given)).chain([mask]).collect();
    vec![child(call, "aten::convolution_backward", inputs)]
}

/// A bias is added by another op.
fn added_bias(call: &OpCall, product: &OpCall, bias: &Arg) -> Option<OpCall> {
    let Arg::Tensor(bias) = bias else { return None };
    let output = crate::registry::outputs(product)?.into_iter().next()?;
    let rank = output.tensors().first()?.shape.len();
    let view = (2..rank).fold(unsqueeze(bias, 0), |view, dim| unsqueeze(&view, dim));
    Some(child(call, "aten::add_", vec![output, Arg::Tensor(view), Arg::Int(1)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::child::fresh;

    fn kernels(call: &OpCall) -> Vec<(String, &'static str)> {
        let all = crate::leaves(call);
        all.iter().map(|leaf| (leaf.op.name.clone(), leaf.kernel.kernel.family())).collect()
    }

    #[test]
    fn a_layer_is_a_convolution_and_an_addition() {
        let inputs = vec![fresh(&[4, 3, 32, 32], F32), fresh(&[8, 3, 3, 3], F32), fresh(&[8], F32)];
        let found = kernels(&OpCall::new("aten::conv2d", inputs));
        let expected = [("aten::cudnn_convolution", "convolution"), ("aten::add_", "elementwise")];
        assert_eq!(found, expected.map(|(op, family)| (op.to_owned(), family)));
    }

    #[test]
    fn depthwise_and_one_dimensional() {
        let mut inputs = vec![fresh(&[4, 8, 16, 16], F32), fresh(&[8, 1, 3, 3], F32), Arg::None];
        inputs.extend([ints(&[1]), ints(&[1]), ints(&[1]), Arg::Int(8)]);
        assert_eq!(kernels(&OpCall::new("aten::conv2d", inputs))[0].0, "aten::_conv_depthwise2d");
        let inputs = vec![fresh(&[4, 8, 100], F32), fresh(&[16, 8, 5], F32), Arg::None];
        let all = crate::leaves(&OpCall::new("aten::conv1d", inputs));
        assert_eq!(all[0].kernel.bytes_written(), 4 * 16 * 96 * 4);
        let inputs = vec![fresh(&[4, 8, 100], F32), fresh(&[16, 8, 5], F32), Arg::None];
        let all = crate::backward::backward(&OpCall::new("aten::conv1d", inputs));
        assert_eq!((all.len(), all[0].tensor(0).map(|grad| grad.shape.to_vec())), (1, Some(vec![4, 16, 96])));
    }
}
