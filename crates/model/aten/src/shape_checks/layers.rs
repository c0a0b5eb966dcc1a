//! Convolutions, norms, losses, and ops along one dimension.

use super::{Complaint, dimension, listed, must, shown, tensor};
use crate::call::{OpCall, Tensor};

/// Returns an argument of a convolution: one number for all dimensions, or one each.
fn each(call: &OpCall, arg: usize, at: usize, default: i64) -> i64 {
    call.ints_at(arg).and_then(|list| list.get(at).or(list.first()).copied()).unwrap_or(default)
}

/// Checks `conv2d(input, weight, bias, stride, padding, dilation, groups)`.
pub(super) fn conv(call: &OpCall) -> Result<(), Complaint> {
    channels(call, false, call.int_at(6).unwrap_or(1))?;
    windows(call)
}

/// Checks `convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)`.
pub(super) fn convolution(call: &OpCall) -> Result<(), Complaint> {
    let transposed = call.flag_at(6).unwrap_or(false);
    channels(call, transposed, call.int_at(8).unwrap_or(1))?;
    if transposed { Ok(()) } else { windows(call) }
}

fn channels(call: &OpCall, transposed: bool, groups: i64) -> Result<(), Complaint> {
    let Some((x, weight)) = tensor(call, 0).zip(tensor(call, 1)) else { return Ok(()) };
    let dims = weight.shape.len();
    let (given, groups) = (x.shape.len(), groups.max(1));
    must(
        dims >= 3 && (given == dims || given + 1 == dims),
        || format!("an input of {} does not match a weight of {}", shown(x), shown(weight)),
        || "an input is [batch, channels, sizes], a weight [channels out, channels in, sizes]".into(),
    )?;
    let has = x.shape[given + 1 - dims];
    let takes = if transposed { weight.shape[0] } else { weight.shape[1].saturating_mul(groups) };
    must(
        has == takes,
        || {
            format!(
                "an input of {} has {has} channels, and a weight of {} takes {takes}",
                shown(x),
                shown(weight)
            )
        },
        || "a weight is [channels out, channels in over groups, sizes]; give groups if there are some".into(),
    )?;
    must(
        weight.shape[0] % groups == 0,
        || {
            format!(
                "{} channels of {} cannot be divided evenly among {groups} groups",
                weight.shape[0],
                shown(weight)
            )
        },
        || "choose a number that divides them".into(),
    )
}

fn windows(call: &OpCall) -> Result<(), Complaint> {
    let Some((x, weight)) = tensor(call, 0).zip(tensor(call, 1)) else { return Ok(()) };
    let sizes = weight.shape.len() - 2;
    for at in 0..sizes {
        let size = x.shape[x.shape.len() - sizes + at];
        let (padding, dilation) = (each(call, 4, at, 0), each(call, 5, at, 1));
        let window = dilation.saturating_mul(weight.shape[2 + at].saturating_sub(1)).saturating_add(1);
        let padded = size.saturating_add(padding.saturating_mul(2));
        must(
            window <= padded
                || call.inputs.get(4).is_some_and(|arg| matches!(arg, crate::call::Arg::Text(_))),
            || {
                format!(
                    "a window of {window} is larger than the input {} of {padded} with its padding",
                    shown(x)
                )
            },
            || "give a larger input, or more padding".into(),
        )?;
    }
    Ok(())
}

/// Checks a tensor with one number per channel.
fn a_channel(x: &Tensor, other: Option<&Tensor>, name: &str) -> Result<(), Complaint> {
    let (Some(other), Some(&channels)) = (other, x.shape.get(1)) else { return Ok(()) };
    must(
        other.numel() == u64::try_from(channels).unwrap_or(0),
        || {
            format!(
                "a {name} of {} does not match an input of {}, which has {channels} channels",
                shown(other),
                shown(x)
            )
        },
        || format!("it must be [{channels}]"),
    )
}

pub(super) fn batch_norm(call: &OpCall) -> Result<(), Complaint> {
    let Some(x) = tensor(call, 0) else { return Ok(()) };
    must(
        x.shape.len() >= 2,
        || format!("an input of {} has no channels", shown(x)),
        || "it must be [batch, channels, ..]".into(),
    )?;
    for (arg, name) in [(1, "weight"), (2, "bias"), (3, "mean"), (4, "variance")] {
        a_channel(x, tensor(call, arg), name)?;
    }
    Ok(())
}

pub(super) fn group_norm(call: &OpCall) -> Result<(), Complaint> {
    let (Some(x), Some(groups)) = (tensor(call, 0), call.int_at(1)) else { return Ok(()) };
    let channels = x.size(1);
    must(
        groups > 0 && channels % groups == 0,
        || format!("{channels} channels of {} cannot be divided evenly among {groups} groups", shown(x)),
        || "choose a number that divides them".into(),
    )?;
    a_channel(x, tensor(call, 2), "weight").and_then(|()| a_channel(x, tensor(call, 3), "bias"))
}

/// Checks `layer_norm(input, normalized_shape, weight, bias)`.
pub(super) fn layer_norm(call: &OpCall) -> Result<(), Complaint> {
    let (Some(x), Some(over)) = (tensor(call, 0), call.ints_at(1)) else { return Ok(()) };
    must(
        x.shape.ends_with(&over),
        || format!("a norm over {} does not match an input of {}", listed(&over), shown(x)),
        || "it is over the last sizes of the input".into(),
    )?;
    for (arg, name) in [(2, "weight"), (3, "bias")] {
        if let Some(other) = tensor(call, arg) {
            must(
                other.shape.as_slice() == over.as_slice(),
                || format!("a {name} of {} does not match a norm over {}", shown(other), listed(&over)),
                || format!("it must be {}", listed(&over)),
            )?;
        }
    }
    Ok(())
}

/// Checks a classification loss: scores `[batch, classes, ..]`, and a class for each of the other positions.
pub(super) fn class_loss(call: &OpCall) -> Result<(), Complaint> {
    let Some((scores, target)) = tensor(call, 0).zip(tensor(call, 1)) else { return Ok(()) };
    let mut places = scores.shape.to_vec();
    if !places.is_empty() {
        places.remove(usize::from(places.len() > 1));
    }
    must(
        target.shape.as_slice() == places.as_slice() || target.shape == scores.shape,
        || format!("targets of {} do not match scores of {}", shown(target), shown(scores)),
        || format!("classes must be {}, and probabilities {}", listed(&places), shown(scores)),
    )
}

/// Checks an op along one dimension, which is the second argument of most.
pub(super) fn one_dimension(call: &OpCall) -> Result<(), Complaint> {
    let Some(x) = tensor(call, 0) else { return Ok(()) };
    let arg = if call.name == "aten::topk" { 2 } else { 1 };
    call.int_at(arg).map_or(Ok(()), |dim| dimension(x, dim).map(drop))
}
