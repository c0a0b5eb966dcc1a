//! User-level activations and dropout.

use crate::bound_call::BoundCall;
use crate::call::{Arg, OpCall};
use crate::child_calls::{child, like};
use crate::op_def::{Lowering, OpDef};
use crate::ops::gradients;

/// Activations that call others.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::relu"])
        .expand(|call| bounded(call, "aten::clamp_min", &[0]))
        .outputs(same)
        .backward(|call| gradients::by_result(call, "aten::threshold_backward")),
    OpDef::composite(&["aten::relu_"])
        .expand(|call| bounded(call, "aten::clamp_min_", &[0]))
        .outputs(same)
        .backward(|call| gradients::by_result(call, "aten::threshold_backward")),
    OpDef::composite(&["aten::relu6"]).expand(|call| bounded(call, "aten::hardtanh", &[0, 6])),
    OpDef::composite(&["aten::relu6_"]).expand(|call| bounded(call, "aten::hardtanh_", &[0, 6])),
    OpDef::composite(&["aten::hardtanh"])
        .expand(|call| renamed(call, "aten::clamp"))
        .outputs(same)
        .backward(|call| gradients::by_input(call, "aten::hardtanh_backward")),
    OpDef::composite(&["aten::hardtanh_"])
        .expand(|call| renamed(call, "aten::clamp_"))
        .outputs(same)
        .backward(|call| gradients::by_input(call, "aten::hardtanh_backward")),
    OpDef::composite(&["aten::selu", "aten::celu"]).expand(|call| first(call, "aten::elu")),
    OpDef::composite(&["aten::selu_", "aten::celu_"]).expand(|call| first(call, "aten::elu_")),
    OpDef::composite(&["aten::prelu"]).expand(|call| renamed(call, "aten::_prelu_kernel")),
    OpDef::composite(&["aten::log_sigmoid"]).expand(|call| first(call, "aten::log_sigmoid_forward")),
    OpDef::leaf(&["aten::dropout"], |call| {
        Some(if is_identity(call) { Lowering::Nothing } else { Lowering::Children })
    })
    .expand(dropout),
    OpDef::composite(&["aten::dropout_", "aten::rrelu"]),
];

/// Returns one result with the form of the input.
fn same(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    Some(vec![Arg::Tensor(call.tensor("self")?.clone())])
}

fn renamed(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    vec![child(call, name, call.inputs.clone())]
}

/// Returns a call with the first argument only.
fn first(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    vec![child(call, name, call.inputs.iter().take(1).cloned().collect())]
}

/// Returns a call with the first argument and bounds.
fn bounded(call: &BoundCall<'_>, name: &str, bounds: &[i64]) -> Vec<OpCall> {
    let bounds = bounds.iter().map(|&bound| Arg::Int(bound));
    vec![child(call, name, call.inputs.iter().take(1).cloned().chain(bounds).collect())]
}

/// Whether nothing is dropped: the input itself is returned.
fn is_identity(call: &BoundCall<'_>) -> bool {
    call.float("p") == Some(0.0) || call.flag("train") == Some(false)
}

/// Returns the calls of a dropout: in training one kernel drops elements.
fn dropout(call: &BoundCall<'_>) -> Vec<OpCall> {
    if is_identity(call) {
        return Vec::new();
    }
    let input = call.tensor("input").map(like).map_or(Arg::None, Arg::Tensor);
    vec![child(
        call,
        "aten::native_dropout",
        std::iter::once(input).chain(call.inputs.iter().skip(1).cloned()).collect(),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::child_calls::fresh;

    #[test]
    fn a_relu_is_a_bound() {
        let all = OpSet::standard().leaves(&OpCall::new("aten::relu_", vec![fresh(&[64], F32)]));
        let found: Vec<_> = all.iter().map(|leaf| (leaf.op.name.as_str(), leaf.kernel.footprint())).collect();
        assert_eq!(found, [("aten::clamp_min_", 256)]);
    }

    #[test]
    fn dropout_runs_in_training_only() {
        let call = |training| {
            let inputs = vec![fresh(&[64], F32), Arg::Float(0.5), Arg::Bool(training)];
            OpSet::standard().expand(&OpCall::new("aten::dropout", inputs)).len()
        };
        assert_eq!((call(true), call(false)), (1, 0));
    }
}
