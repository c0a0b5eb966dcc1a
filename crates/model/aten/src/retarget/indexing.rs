//! Ops that read or write by index.

use super::branch::Branch;
use super::build::{arange, around, empty_like, fill, light, op, overload, range, row_major, view};
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::op_set::OpSet;
use crate::ops::embedding::UNSORTED;

/// Returns the ops inside `index_select`, which gathers with the index expanded to whole rows.
pub(super) fn select(call: &OpCall, ops: &OpSet) -> Vec<Branch> {
    let mut children = vec![light("empty"), light("resize_"), light("view"), view("expand")];
    let views = || vec![light("as_strided"), light("as_strided")];
    children.extend(ops.expand(call).into_iter().map(|gather| Branch::new(gather, views())));
    children
}

/// Returns the ops inside an accumulating `index_put_`: offsets of the places, then a sort. The allocations in between cost host time.
pub(super) fn put(call: &OpCall, ops: &OpSet) -> Vec<Branch> {
    let mut children = Vec::new();
    let offsets = ops.expand(call);
    let (sums, rest): (Vec<OpCall>, Vec<OpCall>) = offsets.into_iter().partition(|child| {
        !matches!(child.name.as_str(), "aten::divide_" | "aten::arange" | "aten::contiguous")
    });
    for child in sums {
        let twice = child.name != "aten::add_";
        let follows = (child.name == "aten::mul").then(|| light("to"));
        children.push(if twice { overload(child) } else { Branch::new(child, Vec::new()) });
        children.extend(follows);
    }
    children.push(view("expand"));
    let (dense, rest): (Vec<OpCall>, Vec<OpCall>) =
        rest.into_iter().partition(|child| child.name == "aten::contiguous");
    children.extend(dense.into_iter().map(contiguous));
    children.extend([around("reshape", vec![light("view")]), empty_like(), empty_like()]);
    for child in rest {
        if child.name == "aten::divide_" {
            let inner = OpCall { name: "aten::div_".into(), ..child.clone() };
            children.push(Branch::new(OpCall::new(&child.name, Vec::new()), vec![overload(inner)]));
        } else {
            children.push(arange(child));
        }
    }
    children
}

fn contiguous(call: OpCall) -> Branch {
    let Some(source) = call.tensor_at(0) else { return Branch::new(call, Vec::new()) };
    around("contiguous", vec![row_major(source)])
}

/// Returns the ops that add a sparse tensor to a dense one: rows are added by index. `was` has the ops called on the CPU.
pub(super) fn add_sparse(call: &OpCall, was: &[Branch]) -> Vec<Branch> {
    let find = |name: &str| was.iter().find(|child| child.name() == name).and_then(|c| c.call.output(0));
    let mut children: Vec<Branch> =
        ["_nnz", "result_type", "to", "_values", "to", "_indices", "sparse_dim", "is_coalesced"]
            .into_iter()
            .map(light)
            .collect();
    children.extend([view("squeeze"), light("view"), around("reshape", vec![light("view")])]);
    if let (Some(dense), Some(indices), Some(values)) =
        (call.tensor_at(0), find("aten::_indices"), find("aten::_values"))
    {
        let flat =
            Tensor { shape: [indices.numel() as i64][..].into(), strides: [1][..].into(), ..indices.clone() };
        let scale = call.inputs.get(2).cloned().unwrap_or(Arg::Int(1));
        let arg = |tensor: &Tensor| Arg::Tensor(tensor.clone());
        let inputs = vec![arg(dense), Arg::Int(0), arg(&flat), arg(values), scale];
        children.push(op("index_add_", inputs, Some(dense.clone())));
    }
    // A copy of the result to itself: nothing is copied.
    children.push(light("copy_"));
    children
}

/// Returns the ops of the dense gradient of an embedding, which is set to zero first. `was` has the ops called on the CPU.
pub(super) fn embedding(call: &OpCall, was: &[Branch]) -> Vec<Branch> {
    let copies = was.iter().filter(|child| child.name() == "aten::contiguous");
    let mut children: Vec<Branch> = copies.cloned().collect();
    children.push(light("view"));
    if let Some(indices) = call.tensor_at(1).filter(|indices| indices.numel() > UNSORTED) {
        children.extend(places(indices));
    }
    children.extend(call.output(0).map(zeros));
    children
}

/// Returns the ops of the dense gradient of bags, which sorts the lookups by row.
pub(super) fn bags(call: &OpCall) -> Vec<Branch> {
    call.tensor_at(1).map(places).into_iter().flatten().chain(call.output(0).map(zeros)).collect()
}

/// Returns the ops of `bincount`, which reads the smallest and the largest index on the host before it counts.
pub(super) fn count(call: &OpCall) -> Vec<Branch> {
    let Some(indices) = call.tensor_at(0) else { return Vec::new() };
    let one = Tensor::contiguous(&[], indices.dtype);
    let extreme = |name| op(name, vec![Arg::Tensor(indices.clone())], Some(one.clone()));
    let near = Tensor { device: Device::Cpu, ..one.clone() };
    let inputs = vec![Arg::Tensor(near.clone()), Arg::Tensor(one.clone()), Arg::Bool(false)];
    let copy = op("copy_", inputs, Some(near));
    let moved = around("to", vec![around("_to_copy", vec![light("empty_strided"), copy])]);
    let read = op("_local_scalar_dense", vec![Arg::Tensor(one.clone())], None);
    let read = around("item", vec![read]);
    let counts = call.output(0).map(zeros);
    [extreme("min"), moved, extreme("max"), read].into_iter().chain(counts).collect()
}

/// Returns the ops that create the position of each lookup, which is sorted with the lookups.
fn places(indices: &Tensor) -> Vec<Branch> {
    let count = i64::try_from(indices.numel()).unwrap_or(i64::MAX);
    vec![empty_like(), empty_like(), range(count, indices.dtype)]
}

fn zeros(tensor: &Tensor) -> Branch {
    let mut zero = op("zero_", vec![Arg::Tensor(tensor.clone())], Some(tensor.clone()));
    zero.children = vec![fill(tensor)];
    around("zeros", vec![light("empty"), zero])
}
