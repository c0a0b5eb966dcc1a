//! Dot products of every pair of a sample's vectors: `steptime::interaction`, and its backward pass.

use crate::bound_call::BoundCall;
use crate::build_lowering::{one, result, work};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Interaction, Kernel, Pass};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, read};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["steptime::interaction"], forward)
        .outputs(|call| one(&pooled(&shape(call.tensor("vectors")?, Pass::Forward)?)?, Dtype::F32))
        .backward(gradient),
    OpDef::leaf(&["steptime::interaction_backward"], backward)
        .outputs(|call| one(&call.tensor("vectors")?.shape, Dtype::F32)),
];

/// Returns the interaction of vectors `[B, F, D]`.
fn shape(vectors: &Tensor, pass: Pass) -> Option<Interaction> {
    let [batch, features, dim] = *vectors.shape.as_slice() else { return None };
    Some(Interaction { pass, batch: count(batch), features: count(features), dim: count(dim) })
}

/// Returns the shape of the output: `[B, D + F (F - 1) / 2]`.
fn pooled(shape: &Interaction) -> Option<[i64; 2]> {
    let columns = shape.dim.checked_add(shape.pairs())?;
    Some([i64::try_from(shape.batch).ok()?, i64::try_from(columns).ok()?])
}

/// Returns the operations of `count` products of two vectors per sample.
fn products(shape: &Interaction, count: u64) -> u64 {
    [shape.batch, shape.dim, count].into_iter().fold(2, u64::saturating_mul)
}

fn forward(call: &BoundCall<'_>) -> Option<Lowering> {
    let vectors = call.tensor("vectors")?;
    let shape = shape(vectors, Pass::Forward)?;
    let operands = [read(call, "vectors"), Some(result(call, 0, &pooled(&shape)?, Dtype::F32))];
    Some(work(Kernel::Interaction(shape), vectors.dtype, operands, products(&shape, shape.pairs())))
}

fn backward(call: &BoundCall<'_>) -> Option<Lowering> {
    let vectors = call.tensor("vectors")?;
    let shape = shape(vectors, Pass::Backward)?;
    let given = result(call, 0, &vectors.shape, Dtype::F32);
    let flops = products(&shape, shape.pairs().saturating_mul(2));
    Some(work(
        Kernel::Interaction(shape),
        vectors.dtype,
        [read(call, "grad"), read(call, "vectors"), Some(given)],
        flops,
    ))
}

/// Returns autograd's call for the gradient.
fn gradient(call: &BoundCall<'_>) -> Vec<OpCall> {
    let of = || pooled(&shape(call.tensor("vectors")?, Pass::Forward)?);
    let Some(pooled) = of() else { return Vec::new() };
    let grad = Arg::Tensor(Tensor::contiguous(&pooled, Dtype::F32));
    vec![OpCall::new(
        "steptime::interaction_backward",
        vec![grad, call.arg_or_none("vectors"), call.arg_or_none("plan")],
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;

    fn interaction(vectors: &[i64]) -> OpCall {
        let vectors = Arg::Tensor(Tensor::contiguous(vectors, Dtype::F32));
        OpCall::new("steptime::interaction", vec![vectors, Arg::Int(1)])
    }

    fn kernel(call: &OpCall) -> (Interaction, Vec<u64>, u64) {
        let Lowering::Kernel(lowered) = OpSet::standard().lower(call) else { panic!("no kernel") };
        let Kernel::Interaction(shape) = lowered.kernel else { panic!("another kernel") };
        (shape, lowered.operands.iter().map(|operand| operand.bytes).collect(), lowered.flops)
    }

    #[test]
    fn forward_and_backward_move_vectors_and_pairs() {
        let call = interaction(&[2048, 27, 128]);
        let (shape, bytes, flops) = kernel(&call);
        assert_eq!((shape.batch, shape.features, shape.dim, shape.pairs()), (2048, 27, 128, 351));
        assert_eq!(bytes, [2048 * 27 * 128 * 4, 2048 * (128 + 351) * 4]);
        assert_eq!(flops, 2 * 2048 * 351 * 128);
        let calls = OpSet::standard().backward(&call);
        let (shape, bytes, flops) = kernel(&calls[0]);
        assert_eq!(shape.pass, Pass::Backward);
        assert_eq!(bytes, [2048 * 479 * 4, 2048 * 27 * 128 * 4, 2048 * 27 * 128 * 4]);
        assert_eq!(flops, 4 * 2048 * 351 * 128);
        let given = OpSet::standard().outputs(&calls[0]).unwrap();
        assert_eq!(given, [Arg::Tensor(Tensor::contiguous(&[2048, 27, 128], Dtype::F32))]);
    }

    #[test]
    fn other_arguments_are_priced_by_their_bytes() {
        let call = interaction(&[2048, 128]);
        assert!(matches!(OpSet::standard().lower(&call), Lowering::Unknown(_)));
        assert!(OpSet::standard().backward(&call).is_empty() && OpSet::standard().outputs(&call).is_none());
        let huge = interaction(&[1 << 40, 1 << 20, 1 << 20]);
        assert_eq!(kernel(&huge).2, u64::MAX);
    }
}
