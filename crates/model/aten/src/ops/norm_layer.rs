//! User-level norms and softmax.

use crate::bound_call::BoundCall;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::child;
use crate::dtype::Dtype;
use crate::op_def::OpDef;

/// Definitions of norm layers and softmax.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::batch_norm"]).expand(|call| renamed(call, "aten::_batch_norm_impl_index", 9)),
    OpDef::composite(&["aten::_batch_norm_impl_index"]).expand(batch_norm),
    OpDef::composite(&["aten::layer_norm"]).expand(layer_norm),
    OpDef::composite(&["aten::rms_norm"]).expand(|call| renamed(call, "aten::_fused_rms_norm", 4)),
    OpDef::composite(&["aten::group_norm"]).expand(group_norm),
    OpDef::composite(&["aten::softmax", "aten::special_softmax"])
        .expand(|call| softmax(call, "aten::_softmax")),
    OpDef::composite(&["aten::log_softmax", "aten::special_log_softmax"])
        .expand(|call| softmax(call, "aten::_log_softmax")),
    OpDef::composite(&["aten::instance_norm"]),
];

/// Returns a call with the same arguments, missing ones absent.
fn renamed(call: &BoundCall<'_>, name: &str, arguments: usize) -> Vec<OpCall> {
    let mut inputs = call.inputs.clone();
    inputs.resize(arguments, Arg::None);
    vec![child(call, name, inputs)]
}

/// Returns the largest batch that cuDNN supports, in training and otherwise.
pub(crate) const fn largest_batch(training: bool) -> i64 {
    if training { 880_801 } else { 65_535 }
}

/// Whether PyTorch chooses cuDNN's kernels.
fn by_cudnn(call: &BoundCall<'_>, input: &Tensor) -> bool {
    let there = |name: &str| call.tensor(name).is_some();
    let training = call.flag("training").unwrap_or(false);
    let running = match [there("running_mean"), there("running_var")] {
        [true, true] => true,
        [false, false] => training,
        _ => false,
    };
    let size = input.size(0);
    let fits = match input.shape.len() {
        // Inputs without spatial dimensions use PyTorch's own kernels, as recorded with PyTorch 2.11.
        0..=2 => false,
        _ => size <= largest_batch(training),
    };
    there("weight")
        && there("bias")
        && running
        && fits
        && input.dtype != Dtype::Bf16
        && call.flag("cudnn_enabled").unwrap_or(true)
}

fn batch_norm(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(input) = call.tensor("input") else { return Vec::new() };
    let name = if by_cudnn(call, input) { "aten::cudnn_batch_norm" } else { "aten::native_batch_norm" };
    renamed(call, name, 8)
}

fn layer_norm(call: &BoundCall<'_>) -> Vec<OpCall> {
    renamed(call, "aten::native_layer_norm", 5)
}

/// Takes (input, groups, weight, bias, epsilon).
fn group_norm(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(input) = call.tensor("input") else { return Vec::new() };
    let area: i64 = input.shape.iter().skip(2).product();
    let sizes = [input.size(0), input.size(1), area].map(Arg::Int);
    let inputs = [call.arg_or_none("input"), call.arg_or_none("weight"), call.arg_or_none("bias")]
        .into_iter()
        .chain(sizes)
        .chain([call.arg_or_none("num_groups"), call.arg_or_none("eps")]);
    vec![child(call, "aten::native_group_norm", inputs.collect())]
}

fn softmax(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    vec![child(call, name, vec![call.arg_or_none("self"), call.arg_or_none("dim"), Arg::Bool(false)])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::child_calls::fresh;

    #[test]
    fn batch_norm_of_images_is_by_cudnn_and_of_rows_is_not() {
        let call = |shape: &[i64], training| {
            let statistics = std::iter::repeat_with(|| fresh(&[8], Dtype::F32)).take(4);
            let inputs = std::iter::once(fresh(shape, Dtype::F32)).chain(statistics);
            let rest = [Arg::Bool(training), Arg::Float(0.1), Arg::Float(1e-5), Arg::Bool(true)];
            OpSet::standard()
                .leaves(&OpCall::new("aten::batch_norm", inputs.chain(rest).collect()))
                .remove(0)
                .op
                .name
        };
        assert_eq!(call(&[4, 8, 5, 5], true), "aten::cudnn_batch_norm");
        assert_eq!(call(&[64, 8], false), "aten::native_batch_norm");
        assert_eq!(call(&[64, 8], true), "aten::native_batch_norm");
    }

    #[test]
    fn group_norm_passes_sizes() {
        let inputs =
            vec![fresh(&[2, 6, 5, 5], Dtype::F32), Arg::Int(3), Arg::None, Arg::None, Arg::Float(1e-5)];
        let child = OpSet::standard().expand(&OpCall::new("aten::group_norm", inputs)).remove(0);
        assert_eq!(
            (child.int_at(3), child.int_at(4), child.int_at(5), child.int_at(6)),
            (Some(2), Some(6), Some(25), Some(3))
        );
    }
}
