//! Products with a sparse matrix, and the merging of a sparse tensor's entries.

use std::collections::{BTreeMap, BTreeSet};

use steptime_graph::execution::{Arg as Recorded, ArgRange, ExecutionGraph, NodeId, Scalar, TensorId};

use super::branch::Branch;
use super::build::{around, dense, fill, light, op, overload, range, view};
use crate::call::{Arg, OpCall, Tensor};
use crate::derive::OpTree;
use crate::dtype::Dtype;

/// Positions of a product's sparse matrix, and of its indices and values after the arguments.
const MATRIX: usize = 1;
const INDICES: usize = 5;
const VALUES: usize = 6;

/// Returns the products whose sparse matrix is not coalesced: it was made in the step and never marked as coalesced. A matrix that is older than the
/// step
/// counts as coalesced, unless an op of the step shows otherwise.
pub(super) fn uncoalesced(trace: &ExecutionGraph, tree: &OpTree) -> BTreeSet<NodeId> {
    let nodes = || tree.nodes.iter().filter_map(|node| Some((node.call.name.as_str(), node.origin?)));
    let mut marks: BTreeMap<TensorId, bool> = BTreeMap::new();
    for (name, node) in nodes() {
        let said = (name == "aten::is_coalesced").then(|| truth(trace, trace.outputs(node), 0)).flatten();
        if let (Some(said), Some((_, tensor))) = (said, trace.input_tensors(node).next()) {
            marks.entry(tensor).or_insert(said);
        }
    }
    let mut found = BTreeSet::new();
    for (name, node) in nodes() {
        let mark = match name {
            "aten::_coalesced_" => truth(trace, trace.inputs(node), 1),
            "aten::_coalesce" => Some(true),
            _ => None,
        };
        if let (Some(mark), Some((_, tensor))) = (mark, trace.output_tensors(node).next()) {
            marks.insert(tensor, mark);
        }
        let matrix = trace.input_tensors(node).find(|&(at, _)| name == "aten::addmm" && at == MATRIX);
        let merged = |tensor: TensorId| {
            let older = trace.tensors.get(tensor).producer.is_none();
            marks.get(&tensor).copied().unwrap_or(older)
        };
        if matrix.is_some_and(|(_, tensor)| !merged(tensor)) {
            found.insert(node);
        }
    }
    found
}

fn truth(trace: &ExecutionGraph, range: ArgRange, at: usize) -> Option<bool> {
    match trace.args.get(range).get(at)? {
        Recorded::Scalar(Scalar::Bool(value)) => Some(*value),
        _ => None,
    }
}

/// Whether one of two factors is sparse.
pub(super) fn is_product(call: &OpCall) -> bool {
    call.input_tensors().any(|(.., tensor)| tensor.is_sparse())
}

/// Returns the ops inside `addmm` of a sparse matrix: a merge of entries if it is not coalesced, 32-bit indices for cuSPARSE, and a column-major
/// result
/// that is copied back.
pub(super) fn product(call: &OpCall, coalesced: bool) -> Vec<Branch> {
    let mut children: Vec<Branch> =
        ["empty", "sparse_dim", "dense_dim", "resize_"].into_iter().map(light).collect();
    let [Some(matrix), Some(indices), Some(values)] = [MATRIX, INDICES, VALUES].map(|at| call.tensor_at(at))
    else {
        return children;
    };
    let mut coalesce = vec![light("is_coalesced")];
    if !coalesced {
        let inputs = [matrix, indices, values].map(|tensor| Arg::Tensor(tensor.clone())).to_vec();
        let mut merge = op("_coalesce", inputs, Some(matrix.clone()));
        merge.children = merging(&merge.call);
        coalesce.push(merge);
    }
    children.push(around("coalesce", coalesce));
    children.extend(["_nnz", "_indices", "_values"].into_iter().map(light));
    children.extend([view("select"), view("select"), light("empty")]);
    let entries = values.size(0);
    for _ in 0..2 {
        let [narrow, wide] = [Dtype::I32, indices.dtype].map(|dtype| Tensor::contiguous(&[entries], dtype));
        children.extend([light("empty"), copy(&narrow, &wide)]);
    }
    let Some(result) = call.output(0) else { return children };
    children.push(start(call, result));
    let &[rows, columns] = &result.shape[..] else { return children };
    let turned =
        Tensor { shape: [columns, rows][..].into(), strides: [1, columns][..].into(), ..result.clone() };
    let by_column = Tensor { strides: [1, rows][..].into(), ..result.clone() };
    children.extend([
        view("transpose"),
        dense(&turned, &[]),
        around("transpose_", vec![light("as_strided_")]),
    ]);
    children.push(around("mT", vec![view("transpose")]));
    children.push(copy(result, &by_column));
    children
}

/// Returns the op for the addend of the product: zeros if its factor is zero or missing, or if there is no addend.
fn start(call: &OpCall, result: &Tensor) -> Branch {
    match (call.inputs.get(3), call.tensor_at(0)) {
        (Some(Arg::Int(1)), Some(added)) => copy(result, added),
        (Some(Arg::Int(0)) | None, _) | (_, None) => {
            let zero = op("zero_", vec![Arg::Tensor(result.clone())], Some(result.clone()));
            Branch { children: vec![fill(result)], ..zero }
        }
        (Some(factor), Some(added)) => {
            op("mul", vec![Arg::Tensor(added.clone()), factor.clone()], Some(result.clone()))
        }
    }
}

/// Returns the ops inside `_coalesce`, besides its own kernels: numbering of the entries, and splitting of flattened indices into dimensions.
pub(super) fn merging(call: &OpCall) -> Vec<Branch> {
    let mut children: Vec<Branch> =
        ["_nnz", "is_coalesced", "_values", "sparse_dim", "_indices"].into_iter().map(light).collect();
    let Some(indices) = call.tensor_at(1) else { return children };
    children.push(range(indices.size(1), indices.dtype));
    children.extend(["_indices", "empty", "_indices", "empty"].into_iter().map(light));
    children.extend(["resize_", "empty"].into_iter().map(light));
    let dims = indices.size(0);
    if dims > 1 {
        let row = Tensor::contiguous(&[1, indices.size(1)], indices.dtype);
        let arg = || Arg::Tensor(row.clone());
        children.push(light("empty"));
        for _ in 0..dims {
            let divided = op("div_", vec![arg(), Arg::Int(1), Arg::Text("trunc".into())], Some(row.clone()));
            children.extend([
                around("narrow", vec![view("slice")]),
                copy(&row, &row),
                around("divide_", vec![overload(divided.call)]),
                op("add_", vec![arg(), arg(), Arg::Int(-1)], Some(row.clone())),
            ]);
        }
    }
    children.extend(["_sparse_coo_tensor_with_dims_and_tensors", "_coalesced_"].into_iter().map(light));
    children
}

fn copy(to: &Tensor, from: &Tensor) -> Branch {
    let inputs = vec![Arg::Tensor(to.clone()), Arg::Tensor(from.clone()), Arg::Bool(false)];
    op("copy_", inputs, Some(to.clone()))
}
