//! Aliases of elementwise ops, and combinations of a few ops.

use crate::bound_call::BoundCall;
use crate::call::{Arg, OpCall};
use crate::child_calls::{child, like};
use crate::op_def::OpDef;

/// Defines a list of aliases: the called op, and the names that call it.
macro_rules! names {
    ($($called:literal: $($name:literal)+;)*) => {
        &[$(OpDef::composite(&[$($name),+]).expand(|call| vec![child(call, $called, call.inputs.clone())])),*]
    };
}

/// Aliases of elementwise ops.
pub static OPS: &[OpDef] = names! {
    "aten::div": "aten::true_divide" "aten::divide";
    "aten::div_": "aten::true_divide_" "aten::divide_";
    "aten::mul": "aten::multiply";
    "aten::mul_": "aten::multiply_";
    "aten::sub": "aten::subtract";
    "aten::sub_": "aten::subtract_";
    "aten::pow": "aten::float_power";
    "aten::bitwise_and": "aten::__and__";
    "aten::bitwise_and_": "aten::__iand__";
    "aten::bitwise_or": "aten::__or__";
    "aten::bitwise_or_": "aten::__ior__";
    "aten::bitwise_xor": "aten::__xor__";
    "aten::gt": "aten::greater";
    "aten::ge": "aten::greater_equal";
    "aten::lt": "aten::less";
    "aten::le": "aten::less_equal";
    "aten::ne": "aten::not_equal";
    "aten::clamp": "aten::clip";
    "aten::clamp_": "aten::clip_";
    "aten::neg": "aten::negative";
    "aten::abs": "aten::absolute";
};

/// Combinations of a few ops.
pub static COMBINED: &[OpDef] = &[
    OpDef::composite(&["aten::square"]).expand(|call| squared(call, "aten::pow")),
    OpDef::composite(&["aten::square_"]).expand(|call| squared(call, "aten::pow_")),
    OpDef::composite(&["aten::isnan"]).expand(|call| {
        let input = call.inputs.first().cloned().unwrap_or_default();
        vec![child(call, "aten::ne", vec![input.clone(), input])]
    }),
    OpDef::composite(&["aten::isinf"]).expand(|call| {
        let (input, size) = magnitude(call);
        vec![
            child(call, "aten::abs", vec![input]),
            child(call, "aten::eq", vec![size, Arg::Float(f64::INFINITY)]),
        ]
    }),
    OpDef::composite(&["aten::isfinite"]).expand(|call| {
        let (input, size) = magnitude(call);
        let truth = |arg: &Arg| match arg {
            Arg::Tensor(tensor) => Arg::Tensor(crate::Tensor { dtype: crate::Dtype::Bool, ..tensor.clone() }),
            other => other.clone(),
        };
        let both = vec![truth(&size), truth(&size)];
        vec![
            child(call, "aten::abs", vec![input.clone()]),
            child(call, "aten::ne", vec![size, Arg::Float(f64::INFINITY)]),
            child(call, "aten::eq", vec![input.clone(), input]),
            child(call, "aten::mul", both),
        ]
    }),
    OpDef::composite(&["aten::masked_fill"]).expand(|call| {
        let Some(input) = call.tensor("self") else { return Vec::new() };
        let mut inputs = call.inputs.clone();
        inputs[0] = Arg::Tensor(like(input));
        let copied = child(call, "aten::clone", vec![Arg::Tensor(input.clone()), Arg::None]);
        vec![copied, child(call, "aten::masked_fill_", inputs)]
    }),
    OpDef::composite(&["aten::abs_"]).expand(|call| into_itself(call, "aten::abs")),
    OpDef::composite(&["aten::logit_"]).expand(|call| into_itself(call, "aten::logit")),
    OpDef::composite(&["aten::nan_to_num_"]).expand(|call| into_itself(call, "aten::nan_to_num")),
];

fn squared(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    vec![child(call, name, call.inputs.iter().take(1).cloned().chain([Arg::Int(2)]).collect())]
}

/// Returns an argument, and its absolute values.
fn magnitude(call: &BoundCall<'_>) -> (Arg, Arg) {
    let input = call.inputs.first().cloned().unwrap_or_default();
    (input.clone(), call.tensor("self").map_or(Arg::None, |tensor| Arg::Tensor(like(tensor))))
}

/// Returns a call with the first argument also as the tensor to write.
fn into_itself(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    let target = call.inputs.first().cloned();
    vec![child(call, name, call.inputs.iter().cloned().chain(target).collect())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::child_calls::fresh;

    fn leaves(name: &str, inputs: Vec<Arg>) -> Vec<(String, u64)> {
        let all = OpSet::standard().leaves(&OpCall::new(name, inputs));
        all.into_iter().map(|leaf| (leaf.op.name, leaf.kernel.footprint())).collect()
    }

    #[test]
    fn names_lead_to_one_kernel() {
        let inputs = vec![fresh(&[10], F32), Arg::Int(3)];
        assert_eq!(leaves("aten::divide_", inputs), [("aten::div_".into(), 40)]);
        assert_eq!(leaves("aten::square", vec![fresh(&[10], F32)]), [("aten::pow".into(), 80)]);
        assert_eq!(leaves("aten::abs_", vec![fresh(&[10], F32)]), [("aten::abs".into(), 80)]);
    }
}
