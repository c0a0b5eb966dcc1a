//! Pooled lookups in one table.
//!
//! The forward pass is one kernel; it also writes the bag of each lookup and the size of each bag.

use crate::axes::count;
use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{EmbeddingBag, Kernel, Pass, Pooling};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{output_bytes, read};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::_embedding_bag", "aten::_embedding_bag_forward_only"], forward)
        .outputs(shapes)
        .backward(backward),
    OpDef::composite(&["aten::embedding_bag"]).outputs(shapes).expand(leaf),
];

/// Arguments of a forward call.
struct Bags {
    rows: u64,
    dim: u64,
    bags: u64,
    lookups: u64,
    pooling: Pooling,
    weighted: bool,
    index: Dtype,
}

fn bags(call: &BoundCall<'_>) -> Option<Bags> {
    let (weight, indices, offsets) =
        (call.tensor("weight")?, call.tensor("indices")?, call.tensor("offsets")?);
    let last = u64::from(call.flag("include_last_offset").unwrap_or(false));
    Some(Bags {
        rows: count(weight.shape.get(..1)?),
        dim: count(weight.shape.get(1..)?),
        bags: offsets.numel().saturating_sub(last),
        lookups: indices.numel(),
        pooling: pooling(call.int("mode")?),
        weighted: call.tensor("per_sample_weights").is_some_and(|weights| weights.numel() > 0),
        index: indices.dtype,
    })
}

/// Returns the pooling of a mode.
pub(super) const fn pooling(mode: i64) -> Pooling {
    match mode {
        0 => Pooling::Sum,
        1 => Pooling::Mean,
        _ => Pooling::Max,
    }
}

fn forward(call: &BoundCall<'_>) -> Option<Lowering> {
    let table = call.tensor("weight")?;
    let bags = bags(call)?;
    let row = bags.dim * table.dtype.size();
    let mut source = read(call, "weight")?;
    source.bytes = source.bytes.min(bags.lookups * row);
    let index = bags.index.size();
    let max = bags.pooling == Pooling::Max;
    let kernel = Kernel::EmbeddingBag(EmbeddingBag {
        pass: Pass::Forward,
        rows: bags.rows,
        dim: bags.dim,
        bags: bags.bags,
        lookups: bags.lookups,
        pooling: bags.pooling,
        weighted: bags.weighted,
        index_bytes: index,
    });
    let weights = if bags.weighted { read(call, "per_sample_weights") } else { None };
    let operands = [
        Some(source),
        read(call, "indices"),
        read(call, "offsets"),
        weights,
        Some(output_bytes(0, bags.bags.saturating_mul(row))),
        Some(output_bytes(1, bags.lookups * index)),
        Some(output_bytes(2, bags.bags * index)),
        max.then(|| output_bytes(3, bags.bags.saturating_mul(bags.dim).saturating_mul(index))),
    ];
    let flops = bags.lookups * bags.dim * if bags.weighted { 2 } else { 1 };
    Some(work(kernel, table.dtype, operands, flops))
}

fn shapes(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let Bags { dim, bags, lookups, pooling, index, .. } = bags(call)?;
    let tensor = |shape: &[u64], dtype| {
        let shape: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
        Arg::Tensor(Tensor::contiguous(&shape, dtype))
    };
    let most = if pooling == Pooling::Max { tensor(&[bags, dim], index) } else { tensor(&[0], index) };
    let dtype = call.tensor("weight")?.dtype;
    Some(vec![tensor(&[bags, dim], dtype), tensor(&[lookups], index), tensor(&[bags], index), most])
}

/// Returns the leaf of `aten::embedding_bag`, which has the same arguments except for its own padding index.
fn leaf(call: &BoundCall<'_>) -> Vec<OpCall> {
    let mut inputs = call.inputs.clone();
    inputs.resize(9, Arg::None);
    if inputs[8] == Arg::None {
        inputs[8] = Arg::Int(-1);
    }
    let outputs = call.outputs.clone();
    vec![OpCall { outputs, settings: call.settings, ..OpCall::new("aten::_embedding_bag", inputs) }]
}

/// Returns autograd's call for the gradient of the table.
fn backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(outputs) = shapes(call) else { return Vec::new() };
    let rows = call.tensor("weight").map_or(0, |table| table.size(0));
    let mut inputs = vec![outputs[0].clone(), call.arg_or_none("indices"), call.arg_or_none("offsets")];
    inputs.extend(outputs[1..].iter().cloned());
    inputs.extend([
        Arg::Int(rows),
        call.arg_or_none("scale_grad_by_freq"),
        call.arg_or_none("mode"),
        call.arg_or_none("sparse"),
        call.arg_or_none("per_sample_weights"),
        call.arg_or_none("padding_idx"),
    ]);
    vec![OpCall { settings: call.settings, ..OpCall::new("aten::_embedding_bag_backward", inputs) }]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::OpSet;
    use crate::kernel::Slot;

    /// Returns a call of the forward pass.
    pub(in crate::ops) fn forward_call(mode: i64) -> OpCall {
        let ints = |n: i64| Arg::Tensor(Tensor::contiguous(&[n], Dtype::I64));
        let table = Arg::Tensor(Tensor::contiguous(&[1_000_000, 64], Dtype::F32));
        let no = Arg::Bool(false);
        let inputs =
            vec![table, ints(10240), ints(1024), no.clone(), Arg::Int(mode), Arg::Bool(true), Arg::None, no];
        OpCall::new("aten::_embedding_bag", inputs)
    }

    #[test]
    fn a_forward_touches_the_rows_it_looks_up() {
        let Lowering::Kernel(call) = OpSet::standard().lower(&forward_call(0)) else { panic!("no kernel") };
        let Kernel::EmbeddingBag(bag) = call.kernel else { panic!("another kernel") };
        assert_eq!((bag.rows, bag.dim, bag.bags, bag.lookups), (1_000_000, 64, 1024, 10240));
        let bytes: Vec<_> = call.operands.iter().map(|operand| (operand.slot, operand.bytes)).collect();
        assert_eq!(bytes[0], (Slot::Input(0, 0), 10240 * 256));
        assert_eq!(bytes[3], (Slot::Output(0, 0), 1024 * 256));
        assert_eq!(call.flops, 10240 * 64);
    }
}
