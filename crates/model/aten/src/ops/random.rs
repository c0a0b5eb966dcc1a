//! Random numbers and dropout.

use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, dtype, like};
use crate::dtype::Dtype;
use crate::kernel::{Elementwise, Kernel, Work};
use crate::layout;
use crate::op_def::{Lowering, OpDef};
use crate::operands::{output, read};
use crate::ops::pointwise::{self, Rule};

/// Definitions of random numbers and dropout.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(
        &[
            "aten::normal_",
            "aten::uniform_",
            "aten::random_",
            "aten::exponential_",
            "aten::log_normal_",
            "aten::cauchy_",
            "aten::geometric_",
        ],
        |call| pointwise::lower(call, &NUMBERS),
    )
    .outputs(|call| pointwise::outputs(call, &NUMBERS)),
    OpDef::leaf(&["aten::bernoulli_"], |call| pointwise::lower(call, &BERNOULLI))
        .outputs(|call| pointwise::outputs(call, &BERNOULLI)),
    OpDef::leaf(&["aten::native_dropout"], dropout).outputs(dropout_outputs).backward(|call| {
        let results = dropout_outputs(call).unwrap_or_default();
        vec![child(
            call,
            "aten::native_dropout_backward",
            results.into_iter().chain([Arg::Float(1.0)]).collect(),
        )]
    }),
    OpDef::leaf(&["aten::native_dropout_backward", "aten::_masked_scale"], |call| {
        pointwise::lower(call, &DROPPED)
    })
    .outputs(|call| pointwise::outputs(call, &DROPPED)),
    OpDef::composite(&["aten::rand"]).expand(|call| draw(call, "aten::uniform_", sized(call))),
    OpDef::composite(&["aten::randn"]).expand(|call| draw(call, "aten::normal_", sized(call))),
    OpDef::composite(&["aten::rand_like"])
        .expand(|call| draw(call, "aten::uniform_", call.tensor("self").map(like))),
    OpDef::composite(&["aten::randn_like"])
        .expand(|call| draw(call, "aten::normal_", call.tensor("self").map(like))),
    OpDef::composite(&["aten::randint_like"])
        .expand(|call| draw(call, "aten::random_", call.tensor("self").map(like))),
    OpDef::composite(&["aten::bernoulli"])
        .expand(|call| draw(call, "aten::bernoulli_", call.tensor("self").map(like))),
    OpDef::composite(&["aten::randint", "aten::feature_dropout", "aten::alpha_dropout"]),
];

const NUMBERS: Rule = Rule::new("random", Work::Random, 1).writes();
const BERNOULLI: Rule = Rule::new("bernoulli", Work::Random, 2).writes();
const DROPPED: Rule = Rule::new("dropout_backward", Work::Light, 2).mixed();

/// Returns a tensor with the size and type given as arguments.
fn sized(call: &BoundCall<'_>) -> Option<Tensor> {
    Some(Tensor::contiguous(&call.ints("size")?, dtype(call.arg("dtype"))))
}

/// Returns a call that draws numbers into a new tensor.
fn draw(call: &BoundCall<'_>, name: &str, tensor: Option<Tensor>) -> Vec<OpCall> {
    let target = tensor.or_else(|| call.output(0).cloned());
    target.map(|tensor| child(call, name, vec![Arg::Tensor(tensor)])).into_iter().collect()
}

/// Returns the result, and the mask of kept elements.
fn dropout_outputs(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let input = call.tensor("input")?;
    let like = |dtype| Arg::Tensor(Tensor { dtype, offset: 0, ..input.clone() });
    Some(vec![like(input.dtype), like(Dtype::Bool)])
}

fn dropout(call: &BoundCall<'_>) -> Option<Lowering> {
    let (Some(input), Some(computed)) = (call.tensor("input"), dropout_outputs(call)) else {
        return None;
    };
    // Outside of training nothing is dropped: a clone and a mask of ones.
    if input.numel() == 0 || call.flag("train") == Some(false) {
        return Some(if input.numel() == 0 { Lowering::Nothing } else { Lowering::Children });
    }
    let kernel = Kernel::Elementwise(Elementwise {
        op: "dropout",
        work: Work::Random,
        numel: input.numel(),
        inputs: 1,
        layout: layout::natural(input, &[input]),
    });
    let results =
        computed.iter().enumerate().flat_map(|(ret, arg)| arg.tensors().first().map(|t| output(ret, t)));
    let operands = std::iter::once(read(call, "input")).chain(results.map(Some));
    Some(work(kernel, input.dtype, operands, input.numel()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;

    #[test]
    fn dropout_writes_a_mask_too() {
        let input = Arg::Tensor(Tensor::contiguous(&[64, 10], Dtype::F32));
        let call = OpCall::new("aten::native_dropout", vec![input, Arg::Float(0.5), Arg::Bool(true)]);
        let lowered = OpSet::standard().lower(&call);
        assert_eq!(
            lowered.kernel().map(|kernel| (kernel.bytes_read(), kernel.bytes_written())),
            Some((2560, 3200))
        );
    }
}
