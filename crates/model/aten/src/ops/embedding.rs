//! Lookups without pooling: `embedding` reads rows with `index_select`; its gradient sorts the indices.

use crate::bound_call::BoundCall;
use crate::build_lowering::{counted, giving, launches, made_contiguous, one, zeros};
use crate::call::{Arg, OpCall, Tensor};
use crate::kernel::{Kernel, Scatter, ScatterKind};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{output_bytes, read, scratch};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::embedding"]).outputs(shape).expand(expand).backward(backward),
    OpDef::composite(&["aten::embedding_backward"]).expand(split_backward),
    OpDef::leaf(&["aten::embedding_dense_backward"], dense_backward)
        .outputs(|call| {
            one(
                &[call.int("num_weights")?, call.tensor("grad_output")?.size(-1)],
                call.tensor("grad_output")?.dtype,
            )
        })
        .expand(prepare),
    // With a padding index, its lookups are dropped by child ops.
    OpDef::leaf(&["aten::embedding_sparse_backward"], |call| {
        Some(if sparse_backward(call).is_empty() { Lowering::Nothing } else { Lowering::Children })
    })
    .expand(sparse_backward),
];

/// Maximum number of lookups for the simple kernel; more are sorted first.
pub(crate) const UNSORTED: u64 = 3072;
/// Number of launches of a sort of indices and the segmented sum after it.
pub(super) const SORTED: u32 = 29;

fn shape(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let (table, indices) = (call.tensor("weight")?, call.tensor("indices")?);
    let mut shape = indices.shape.to_vec();
    shape.push(table.size(1));
    one(&shape, table.dtype)
}

fn expand(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(table), Some(indices)) = (call.tensor("weight"), call.tensor("indices")) else {
        return Vec::new();
    };
    let flat = Tensor::contiguous(&[indices.numel() as i64], indices.dtype);
    let taken = Tensor::contiguous(&[indices.numel() as i64, table.size(1)], table.dtype);
    let inputs = vec![Arg::Tensor(table.clone()), Arg::Int(0), Arg::Tensor(flat)];
    let take = OpCall { outputs: vec![Arg::Tensor(taken)], ..OpCall::new("aten::index_select", inputs) };
    made_contiguous(indices).into_iter().chain([take]).collect()
}

fn backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(table), Some(grad)) = (call.tensor("weight"), shape(call)) else { return Vec::new() };
    let arg = |name: &str, default| call.arg(name).cloned().unwrap_or(default);
    let no = || Arg::Bool(false);
    let mut inputs = grad;
    inputs.extend([
        arg("indices", Arg::None),
        Arg::Int(table.size(0)),
        arg("padding_idx", Arg::Int(-1)),
        arg("scale_grad_by_freq", no()),
        arg("sparse", no()),
    ]);
    vec![OpCall::new("aten::embedding_backward", inputs)]
}

fn split_backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let sparse = call.flag("sparse").unwrap_or(false);
    let name = if sparse { "aten::embedding_sparse_backward" } else { "aten::embedding_dense_backward" };
    vec![OpCall::new(name, call.inputs.iter().take(5).cloned().collect())]
}

/// Returns the launches of the dense gradient, which a child op sets to zero; its rows are then written.
fn dense_backward(call: &BoundCall<'_>) -> Option<Lowering> {
    let (grad, indices) = (call.tensor("grad_output")?, call.tensor("indices")?);
    let (rows, dim) = (u64::try_from(call.int("num_weights")?).ok()?, u64::try_from(grad.size(-1)).ok()?);
    let (lookups, row, index) = (indices.numel(), dim * grad.dtype.size(), indices.dtype.size());
    let kernel = Kernel::Scatter(Scatter {
        kind: ScatterKind::EmbeddingDense,
        rows,
        lookups,
        row_bytes: row,
        index_bytes: index,
    });
    let sorted = lookups > UNSORTED;
    let operands = [
        read(call, "grad_output"),
        read(call, "indices"),
        Some(output_bytes(0, lookups.min(rows) * row)),
        sorted.then(|| scratch(4 * lookups * index)),
    ];
    let flops = lookups * dim;
    Some(launches(if sorted { SORTED } else { 1 }, kernel, grad.dtype, operands, flops))
}

/// Returns the child ops of the table's gradient: a contiguous gradient of the output, the places of the indices, zeros.
fn prepare(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(grad), Some(indices), Some(rows)) =
        (call.tensor("grad_output"), call.tensor("indices"), call.int("num_weights"))
    else {
        return Vec::new();
    };
    let places = (indices.numel() > UNSORTED).then(|| counted(indices.numel()));
    let table = zeros(&[rows, grad.size(-1)], grad.dtype);
    made_contiguous(grad).into_iter().chain(made_contiguous(indices)).chain(places).chain([table]).collect()
}

/// Returns the calls that drop padding; none without a padding index. With one, the number of remaining lookups is unknown in advance; all
/// are assumed to remain.
fn sparse_backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(grad), Some(indices)) = (call.tensor("grad"), call.tensor("indices")) else {
        return Vec::new();
    };
    if call.int("padding_idx").is_none_or(|padding| padding < 0) {
        return Vec::new();
    }
    let mask = Tensor { dtype: crate::Dtype::Bool, ..Tensor::contiguous(&indices.shape, indices.dtype) };
    let lookups = indices.numel() as i64;
    let rows = Tensor::contiguous(&[lookups, grad.size(-1)], grad.dtype);
    let flat = Tensor::contiguous(&[lookups], indices.dtype);
    let tensor = |tensor: &Tensor| Arg::Tensor(tensor.clone());
    vec![
        giving("aten::ne", vec![tensor(indices), Arg::Int(call.int("padding_idx").unwrap_or(0))], &mask),
        giving("aten::index", vec![tensor(indices), Arg::Tensors(vec![mask.clone()])], &flat),
        giving("aten::index", vec![tensor(grad), Arg::Tensors(vec![mask])], &rows),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::dtype::Dtype;

    fn gradient(lookups: i64) -> OpCall {
        let grad = Tensor::contiguous(&[lookups, 64], Dtype::F32);
        let indices = Tensor::contiguous(&[lookups], Dtype::I64);
        let inputs =
            vec![Arg::Tensor(grad), Arg::Tensor(indices), Arg::Int(5000), Arg::Int(-1), Arg::Bool(false)];
        OpCall::new("aten::embedding_dense_backward", inputs)
    }

    #[test]
    fn few_lookups_are_not_sorted() {
        let launches = |lookups| match OpSet::standard().lower(&gradient(lookups)) {
            Lowering::Kernel(call) => (call.launches, call.operands.len()),
            _ => (0, 0),
        };
        assert_eq!(launches(64), (1, 3));
        assert_eq!(launches(4096), (29, 4));
        assert_eq!(launches(0), (0, 0));
    }

    #[test]
    fn an_embedding_takes_rows() {
        let table = Tensor::contiguous(&[5000, 64], Dtype::F32);
        let indices = Tensor::contiguous(&[16, 4], Dtype::I64);
        let call = OpCall::new("aten::embedding", vec![Arg::Tensor(table), Arg::Tensor(indices)]);
        let children = OpSet::standard().expand(&call);
        assert_eq!(children[0].name, "aten::index_select");
        assert_eq!(OpSet::standard().outputs(&call), one(&[16, 4, 64], Dtype::F32));
    }
}
