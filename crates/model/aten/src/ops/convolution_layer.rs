//! User-level convolutions, and the choice of their implementation.

use crate::bound_call::BoundCall;
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::child_calls::{child, ints, unsqueeze};
use crate::dtype::Dtype;
use crate::kernel::Conv;
use crate::op_def::OpDef;
use crate::operands::count;
use crate::ops::convolution::{Parameters, Sizes, forward};

/// Definitions of convolution layers.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::conv1d", "aten::conv2d", "aten::conv3d"]).expand(layer),
    OpDef::composite(&["aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d"])
        .expand(layer),
    OpDef::composite(&["aten::convolution"])
        .expand(|call| {
            let flags =
                [Arg::Bool(false), Arg::Bool(false), Arg::Bool(true), Arg::Bool(call.settings.conv_tf32)];
            vec![child(call, "aten::_convolution", call.inputs.iter().cloned().chain(flags).collect())]
        })
        .backward(backward),
    OpDef::composite(&["aten::_convolution"]).expand(expand),
];

/// Returns one number per dimension; `same` and `valid` paddings are derived from the filter.
fn parameter(call: &BoundCall<'_>, name: &str, dims: usize, missing: i64) -> Arg {
    if let Some(Arg::Text(text)) = call.arg(name) {
        let filter = call.tensor("weight").map(|weight| weight.shape.iter().skip(2).copied());
        let same = filter.into_iter().flatten().map(|size| (size - 1) / 2).collect::<Vec<_>>();
        return ints(&if text == "same" { same } else { vec![0; dims] });
    }
    match call.ints(name) {
        Some(list) if list.len() == dims => ints(&list),
        Some(list) if list.len() == 1 => ints(&vec![list[0]; dims]),
        _ => ints(&vec![missing; dims]),
    }
}

/// Returns the calls of a layer: the op for any number of dimensions.
fn layer(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(dims) = call.tensor("weight").and_then(|weight| weight.shape.len().checked_sub(2)) else {
        return Vec::new();
    };
    let transposed = call.has("output_padding");
    let output_padding =
        if transposed { parameter(call, "output_padding", dims, 0) } else { ints(&vec![0; dims]) };
    let inputs = vec![
        call.arg_or_none("input"),
        call.arg_or_none("weight"),
        call.arg_or_none("bias"),
        parameter(call, "stride", dims, 1),
        parameter(call, "padding", dims, 0),
        parameter(call, "dilation", dims, 1),
        Arg::Bool(transposed),
        output_padding,
        Arg::Int(call.int("groups").unwrap_or(1)),
    ];
    vec![child(call, "aten::convolution", inputs)]
}

/// Whether PyTorch's own depthwise kernel is used: each channel separately, no channels last, 32-bit floats.
fn depthwise(input: &Tensor, weight: &Tensor, groups: i64) -> bool {
    let own = Conv::is_depthwise(count(groups), count(input.size(1))) && weight.size(0) % groups == 0;
    own && input.shape.len() == 4 && !input.is_channels_last() && input.dtype == Dtype::F32
}

/// Returns a parameter with the leading dimension that is added for a 1-d convolution.
fn widened(call: &BoundCall<'_>, name: &str, lead: i64, widen: bool) -> Sizes {
    let list = call.ints(name).unwrap_or_default();
    if widen { std::iter::once(lead).chain(list).collect() } else { list }
}

/// Op of the chosen implementation, and its result.
struct Implementation {
    call: OpCall,
    result: Option<Tensor>,
    /// Whether it adds the bias itself.
    with_bias: bool,
}

/// Returns the implementation that PyTorch chooses; `None` if it is unknown.
fn chosen(call: &BoundCall<'_>) -> Option<Implementation> {
    let (input, weight) = (call.tensor("input")?, call.tensor("weight")?);
    if input.device == Device::Cpu || input.is_sparse() || weight.is_sparse() {
        return None;
    }
    let widen = input.shape.len() == 3;
    let view = |tensor: &Tensor| if widen { unsqueeze(tensor, 2) } else { tensor.clone() };
    let (input, weight) = (view(input), view(weight));
    let [stride, padding, dilation] =
        [("stride", 1), ("padding", 0), ("dilation", 1)].map(|(name, lead)| widened(call, name, lead, widen));
    // `convolution` has no such argument, `_convolution` does.
    let tf32 = if call.has("allow_tf32") { call.flag("allow_tf32") } else { None };
    let tf32 = tf32.unwrap_or(call.settings.conv_tf32);
    let transposed = call.flag("transposed").unwrap_or(false);
    let groups = call.int("groups").unwrap_or(1);
    let direct = !transposed && depthwise(&input, &weight, groups);
    let output_padding = transposed.then(|| widened(call, "output_padding", 0, widen));
    let list = |sizes: &Sizes| Arg::Ints(sizes.clone());
    let tensors = [Arg::Tensor(input.clone()), Arg::Tensor(weight.clone())].into_iter();
    let inputs: Vec<Arg> = if direct {
        let filter = ints(weight.shape.get(2..).unwrap_or_default());
        let rest = [filter, call.arg_or_none("bias"), list(&stride), list(&padding), list(&dilation)];
        tensors.chain(rest).collect()
    } else {
        let paddings = std::iter::once(list(&padding)).chain(output_padding.as_ref().map(list));
        let flags = [Arg::Int(groups), Arg::Bool(false), Arg::Bool(false), Arg::Bool(tf32)];
        tensors.chain(paddings).chain([list(&stride), list(&dilation)]).chain(flags).collect()
    };
    let name = match (direct, transposed) {
        (true, _) => "aten::_conv_depthwise2d",
        (_, true) => "aten::cudnn_convolution_transpose",
        _ => "aten::cudnn_convolution",
    };
    let groups = (!direct).then_some(groups);
    let parameters = Parameters { stride, padding, dilation, output_padding, groups, tf32 };
    let result = forward(&parameters, &input, &weight).map(|(_, result)| result);
    Some(Implementation { call: child(call, name, inputs), result, with_bias: direct })
}

/// Returns the chosen op, and the one that adds the bias.
fn expand(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(chosen) = chosen(call) else { return Vec::new() };
    let bias = call.tensor("bias").filter(|_| !chosen.with_bias);
    let added = chosen.result.zip(bias).map(|(result, bias)| {
        let view = (2..result.shape.len()).fold(unsqueeze(bias, 0), |view, dim| unsqueeze(&view, dim));
        child(call, "aten::add_", vec![Arg::Tensor(result), Arg::Tensor(view), Arg::Int(1)])
    });
    std::iter::once(chosen.call).chain(added).collect()
}

/// Returns the calls for the gradients of input, weight and bias.
fn backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let result = chosen(call).and_then(|chosen| chosen.result);
    let (Some(result), Some(weight)) = (result, call.tensor("weight")) else { return Vec::new() };
    let bias = call.tensor("bias").map(|bias| ints(&bias.shape));
    let mask = ints(&[1, 1, i64::from(bias.is_some())]);
    // The result of a 1-d convolution was widened.
    let gradient = if result.shape.len() > weight.shape.len() {
        Tensor::contiguous(&[result.size(0), result.size(1), result.size(3)], result.dtype)
    } else {
        result
    };
    let tensors = [
        Arg::Tensor(gradient),
        call.arg_or_none("input"),
        call.arg_or_none("weight"),
        bias.unwrap_or_default(),
    ];
    let parameters = ["stride", "padding", "dilation", "transposed", "output_padding", "groups"];
    let inputs =
        tensors.into_iter().chain(parameters.map(|name| call.arg_or_none(name))).chain([mask]).collect();
    vec![child(call, "aten::convolution_backward", inputs)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::child_calls::fresh;

    fn kernels(call: &OpCall) -> Vec<(String, &'static str)> {
        let all = OpSet::standard().leaves(call);
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
        let all = OpSet::standard().leaves(&OpCall::new("aten::conv1d", inputs));
        assert_eq!(all[0].kernel.bytes_written(), 4 * 16 * 96 * 4);
        let inputs = vec![fresh(&[4, 8, 100], F32), fresh(&[16, 8, 5], F32), Arg::None];
        let all = OpSet::standard().backward(&OpCall::new("aten::conv1d", inputs));
        assert_eq!(
            (all.len(), all[0].tensor_at(0).map(|grad| grad.shape.to_vec())),
            (1, Some(vec![4, 16, 96]))
        );
    }
}
