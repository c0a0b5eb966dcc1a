//! Lookups without pooling: `embedding` takes rows by `index_select`; its gradient sorts the indices.

use crate::call::{Arg, OpCall, Tensor};
use crate::kernel::{Kernel, Scatter, ScatterKind};
use crate::operands::{output_bytes, read, scratch};
use crate::ops::{Lowered, OpDef};
use crate::work::{counted, giving, launches, made_contiguous, one, or_bytes, zeros};

/// The ops of this file.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::embedding"]).outputs(shape).expand(expand).backward(backward),
    OpDef::composite(&["aten::embedding_backward"]).expand(split_backward),
    OpDef::leaf(&["aten::embedding_dense_backward"], |call| or_bytes(call, dense_backward))
        .outputs(|call| one(&[call.int(2)?, call.tensor(0)?.size(-1)], call.tensor(0)?.dtype))
        .expand(prepare),
    // With a padding index the lookups of it are dropped by child ops.
    OpDef::leaf(&["aten::embedding_sparse_backward"], |call| {
        if sparse_backward(call).is_empty() { Lowered::Nothing } else { Lowered::Children }
    })
    .expand(sparse_backward),
];

/// Up to this many lookups go through one simple kernel; more are sorted first.
const UNSORTED: u64 = 3072;
/// Launches of a sort of indices and the segmented sum behind it.
const SORTED: u32 = 29;

fn shape(call: &OpCall) -> Option<Vec<Arg>> {
    let (table, indices) = (call.tensor(0)?, call.tensor(1)?);
    let mut shape = indices.shape.to_vec();
    shape.push(table.size(1));
    one(&shape, table.dtype)
}

fn expand(call: &OpCall) -> Vec<OpCall> {
    let (Some(table), Some(indices)) = (call.tensor(0), call.tensor(1)) else { return Vec::new() };
    let flat = Tensor::contiguous(&[indices.numel() as i64], indices.dtype);
    let taken = Tensor::contiguous(&[indices.numel() as i64, table.size(1)], table.dtype);
    let inputs = vec![Arg::Tensor(table.clone()), Arg::Int(0), Arg::Tensor(flat)];
    let take = OpCall { outputs: vec![Arg::Tensor(taken)], ..OpCall::new("aten::index_select", inputs) };
    made_contiguous(indices).into_iter().chain([take]).collect()
}

fn backward(call: &OpCall) -> Vec<OpCall> {
    let (Some(table), Some(grad)) = (call.tensor(0), shape(call)) else { return Vec::new() };
    let arg = |at: usize, default| call.inputs.get(at).cloned().unwrap_or(default);
    let no = || Arg::Bool(false);
    let mut inputs = grad;
    inputs.extend([
        arg(1, Arg::None),
        Arg::Int(table.size(0)),
        arg(2, Arg::Int(-1)),
        arg(3, no()),
        arg(4, no()),
    ]);
    vec![OpCall::new("aten::embedding_backward", inputs)]
}

/// Arguments: grad, indices, num_weights, padding_idx, scale_grad_by_freq, sparse.
fn split_backward(call: &OpCall) -> Vec<OpCall> {
    let sparse = call.flag(5).unwrap_or(false);
    let name = if sparse { "aten::embedding_sparse_backward" } else { "aten::embedding_dense_backward" };
    vec![OpCall::new(name, call.inputs.iter().take(5).cloned().collect())]
}

/// Arguments: grad_output, indices, num_weights. The gradient is zeroed by a child op, its rows are then written.
fn dense_backward(call: &OpCall) -> Option<Lowered> {
    let (grad, indices) = (call.tensor(0)?, call.tensor(1)?);
    let (rows, dim) = (u64::try_from(call.int(2)?).ok()?, u64::try_from(grad.size(-1)).ok()?);
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
        read(call, 0),
        read(call, 1),
        Some(output_bytes(0, lookups.min(rows) * row)),
        sorted.then(|| scratch(4 * lookups * index)),
    ];
    let flops = lookups * dim;
    Some(launches(if sorted { SORTED } else { 1 }, kernel, grad.dtype, operands, flops))
}

/// The child ops of the table's gradient: a contiguous one of the output, the places of the indices, zeros.
fn prepare(call: &OpCall) -> Vec<OpCall> {
    let (Some(grad), Some(indices), Some(rows)) = (call.tensor(0), call.tensor(1), call.int(2)) else {
        return Vec::new();
    };
    let places = (indices.numel() > UNSORTED).then(|| counted(indices.numel()));
    let table = zeros(&[rows, grad.size(-1)], grad.dtype);
    made_contiguous(grad).into_iter().chain(made_contiguous(indices)).chain(places).chain([table]).collect()
}

/// Arguments: grad, indices, num_weights, padding_idx, scale_grad_by_freq. Without padding there is nothing to
/// drop. With it, the number of lookups kept is not known beforehand; all are taken to be.
fn sparse_backward(call: &OpCall) -> Vec<OpCall> {
    let (Some(grad), Some(indices)) = (call.tensor(0), call.tensor(1)) else { return Vec::new() };
    if call.int(3).is_none_or(|padding| padding < 0) {
        return Vec::new();
    }
    let mask = Tensor { dtype: crate::Dtype::Bool, ..Tensor::contiguous(&indices.shape, indices.dtype) };
    let lookups = indices.numel() as i64;
    let rows = Tensor::contiguous(&[lookups, grad.size(-1)], grad.dtype);
    let flat = Tensor::contiguous(&[lookups], indices.dtype);
    let tensor = |tensor: &Tensor| Arg::Tensor(tensor.clone());
    vec![
        giving("aten::ne", vec![tensor(indices), Arg::Int(call.int(3).unwrap_or(0))], &mask),
        giving("aten::index", vec![tensor(indices), Arg::Tensors(vec![mask.clone()])], &flat),
        giving("aten::index", vec![tensor(grad), Arg::Tensors(vec![mask])], &rows),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let launches = |lookups| match crate::registry::lower(&gradient(lookups)) {
            Lowered::Kernel(call) => (call.launches, call.operands.len()),
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
        let children = crate::registry::expand(&call);
        assert_eq!(children[0].name, "aten::index_select");
        assert_eq!(shape(&call), one(&[16, 4, 64], Dtype::F32));
    }
}
