//! Gradients of pooled lookups in one table.
//!
//! The gradient of a dense table sorts the indices, that of a sparse one gathers rows of the output's gradient with child ops.

use crate::axes::count;
use crate::bound_call::BoundCall;
use crate::build_lowering::{copied, counted, giving, launches, made_contiguous, result, work, zeros};
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::child;
use crate::dtype::Dtype;
use crate::kernel::{EmbeddingBag, FusedTable, Gather, GatherKind, Kernel, Pass, Pooling};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{output_bytes, read, scratch};
use crate::ops::embedding::SORTED;
use crate::ops::embedding_bag::pooling;
use crate::ops::fused_bags::added_gradients;

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::_embedding_bag_dense_backward"], dense_backward)
        .outputs(table_gradient)
        .expand(prepare),
    OpDef::leaf(&["aten::_embedding_bag_per_sample_weights_backward"], weights_backward).outputs(|call| {
        Some(vec![Arg::Tensor(Tensor::contiguous(
            &call.tensor("indices")?.shape,
            call.tensor("grad")?.dtype,
        ))])
    }),
    OpDef::composite(&["aten::_embedding_bag_backward"]).expand(split_backward),
    OpDef::composite(&["aten::_embedding_bag_sparse_backward"]).expand(sparse_backward),
];

/// Returns the launches of the table's gradient, which a child op sets to zero; its rows are then written.
fn dense_backward(call: &BoundCall<'_>) -> Option<Lowering> {
    let (grad, indices) = (call.tensor("grad")?, call.tensor("indices")?);
    let (bags, dim) = (count(grad.shape.get(..1)?), count(grad.shape.get(1..)?));
    let (rows, pooling) = (u64::try_from(call.int("num_weights")?).ok()?, pooling(call.int("mode")?));
    let (lookups, index, row) = (indices.numel(), indices.dtype.size(), dim * grad.dtype.size());
    let max = pooling == Pooling::Max;
    if call.settings.runtime && !max && grad.dtype == Dtype::F32 {
        return added_gradients(call, [FusedTable { rows, dim, row_bytes: row, lookups }], pooling);
    }
    let weighted = call.tensor("per_sample_weights").is_some_and(|weights| weights.numel() > 0);
    let kernel = Kernel::EmbeddingBag(EmbeddingBag {
        pass: Pass::Backward,
        rows,
        dim,
        bags,
        lookups,
        pooling,
        weighted,
        index_bytes: index,
    });
    let touched = if max { bags * row } else { lookups.min(rows) * row };
    let operands = [
        read(call, "grad"),
        if max { read(call, "maximum_indices") } else { read(call, "indices") },
        if max { None } else { read(call, "offset2bag") },
        if pooling == Pooling::Mean { read(call, "bag_size") } else { None },
        if weighted { read(call, "per_sample_weights") } else { None },
        Some(output_bytes(0, touched.min(rows * row))),
        (!max).then(|| scratch(4 * lookups * index)),
    ];
    let flops = lookups * dim * if weighted { 2 } else { 1 };
    Some(launches(if max { 1 } else { SORTED }, kernel, grad.dtype, operands, flops))
}

/// Returns the launches of the weights' gradient: one dot product per lookup.
fn weights_backward(call: &BoundCall<'_>) -> Option<Lowering> {
    let (grad, table, indices) = (call.tensor("grad")?, call.tensor("weight")?, call.tensor("indices")?);
    let (rows, dim) = (count(table.shape.get(..1)?), count(table.shape.get(1..)?));
    let (lookups, row) = (indices.numel(), dim * table.dtype.size());
    let mut source = read(call, "weight")?;
    source.bytes = source.bytes.min(lookups * row);
    let kernel = Kernel::Gather(Gather {
        kind: GatherKind::Other,
        rows,
        lookups,
        row_bytes: row,
        index_bytes: indices.dtype.size(),
    });
    let gradient = result(call, 0, &[lookups as i64], grad.dtype);
    let operands =
        [read(call, "grad"), Some(source), read(call, "indices"), read(call, "offset2bag"), Some(gradient)];
    Some(work(kernel, grad.dtype, operands, 2 * lookups * dim))
}

/// Returns the child ops of the table's gradient: a contiguous gradient of the output, the places of the indices, zeros.
fn prepare(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(grad), Some(indices), Some(rows)) =
        (call.tensor("grad"), call.tensor("indices"), call.int("num_weights"))
    else {
        return Vec::new();
    };
    let sorts = call.int("mode") != Some(2);
    let places = sorts.then(|| counted(indices.numel()));
    let table = zeros(&[rows, grad.size(-1)], grad.dtype);
    made_contiguous(grad).into_iter().chain(places).chain([table]).collect()
}

fn table_gradient(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let grad = call.tensor("grad")?;
    Some(vec![Arg::Tensor(Tensor::contiguous(&[call.int("num_weights")?, grad.size(-1)], grad.dtype))])
}

fn split_backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let pick = |names: &[&str]| names.iter().map(|name| call.arg_or_none(name)).collect::<Vec<_>>();
    let rest = pick(&["num_weights", "scale_grad_by_freq", "mode", "per_sample_weights", "padding_idx"]);
    let (name, first) = if call.flag("sparse").unwrap_or(false) {
        let first = pick(&["grad", "indices", "offsets", "offset2bag", "bag_size"]);
        ("aten::_embedding_bag_sparse_backward", first)
    } else {
        let first = pick(&["grad", "indices", "offset2bag", "bag_size", "maximum_indices"]);
        ("aten::_embedding_bag_dense_backward", first)
    };
    vec![child(call, name, [first, rest].concat())]
}

/// Returns the calls of the sparse gradient: the bag's gradient is read once per lookup, and scaled for a mean.
fn sparse_backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(grad), Some(bag)) = (call.tensor("grad"), call.tensor("offset2bag")) else { return Vec::new() };
    let rows = Tensor::contiguous(&[bag.size(0), grad.size(-1)], grad.dtype);
    let take = |from: &Tensor, rows: &Tensor| {
        giving(
            "aten::index_select",
            vec![Arg::Tensor(from.clone()), Arg::Int(0), call.arg_or_none("offset2bag")],
            rows,
        )
    };
    let mut children = vec![take(grad, &rows)];
    let column = Tensor::strided(&[bag.size(0), 1], &[1, 1], grad.dtype);
    if call.tensor("per_sample_weights").is_some_and(|weights| weights.numel() > 0) {
        children.push(scaled(&rows, &column));
    }
    if let (Some(Pooling::Mean), Some(sizes)) = (call.int("mode").map(pooling), call.tensor("bag_size")) {
        let of_bags = Tensor::contiguous(&[sizes.size(0)], grad.dtype);
        let number = || Arg::Tensor(of_bags.clone());
        children.extend([
            copied(&of_bags, sizes),
            giving("aten::fill_", vec![number(), Arg::Int(1)], &of_bags),
            giving("aten::div_", vec![number(), number()], &of_bags),
            take(&Tensor::strided(&[sizes.size(0), 1], &[1, 1], grad.dtype), &column),
            scaled(&rows, &column),
        ]);
    }
    let inputs = vec![
        Arg::Tensor(rows),
        call.arg_or_none("indices"),
        call.arg_or_none("num_weights"),
        call.arg_or_none("padding_idx"),
        call.arg_or_none("scale_grad_by_freq"),
    ];
    children.push(OpCall::new("aten::embedding_sparse_backward", inputs));
    children
}

/// Returns the product of rows and a column.
fn scaled(rows: &Tensor, column: &Tensor) -> OpCall {
    giving("aten::mul_", vec![Arg::Tensor(rows.clone()), Arg::Tensor(column.clone())], rows)
}

#[cfg(test)]
mod tests {
    use crate::OpSet;
    use crate::ops::embedding_bag::tests::forward_call;

    #[test]
    fn a_sparse_gradient_is_a_gather_of_the_bags_gradient() {
        let ops = OpSet::standard();
        let calls = ops.backward(&forward_call(0));
        let children = ops.expand(&calls[0]);
        assert_eq!(children[0].name, "aten::_embedding_bag_sparse_backward");
        let children = ops.expand(&children[0]);
        let names: Vec<_> = children.iter().map(|child| child.name.as_str()).collect();
        assert_eq!(names, ["aten::index_select", "aten::embedding_sparse_backward"]);
        assert_eq!(children[0].output(0).map(|t| t.shape.to_vec()), Some(vec![10240, 64]));
    }
}
