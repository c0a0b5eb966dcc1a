//! Ops that take or put by index.

use super::branch::Branch;
use super::build::{around, empty_like, fill, light, op, row_major, view};
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::registry;

/// `index_select` gathers, with the index expanded to whole rows.
pub(super) fn select(call: &OpCall) -> Vec<Branch> {
    let mut children = vec![light("empty"), light("resize_"), light("view"), view("expand")];
    let views = || vec![light("as_strided"), light("as_strided")];
    children.extend(registry::expand(call).into_iter().map(|gather| Branch::new(gather, views())));
    children
}

/// `index_put_` that accumulates: offsets of the places, then a sort. The allocations in between cost host time.
pub(super) fn put(call: &OpCall) -> Vec<Branch> {
    let mut children = Vec::new();
    let offsets = registry::expand(call);
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

/// An op with a number, which calls the same with that number in a tensor.
fn overload(call: OpCall) -> Branch {
    let mut inner = call.clone();
    if let (Some(dtype), Some(number)) = (call.tensor(0).map(|t| t.dtype), inner.inputs.get_mut(1)) {
        let tensor = Tensor { device: Device::Cpu, ..Tensor::contiguous(&[], dtype) };
        *number = Arg::Tensor(tensor);
    }
    Branch::new(call, vec![Branch::new(inner, Vec::new())])
}

/// `arange` allocates its result and calls its overload that fills it.
fn arange(call: OpCall) -> Branch {
    let numbers = vec![Arg::Int(0), call.inputs.first().cloned().unwrap_or_default(), Arg::Int(1)];
    let result = call.outputs.first().cloned().unwrap_or_default();
    let inputs = numbers.into_iter().chain([result]).collect();
    let inner = OpCall { outputs: call.outputs.clone(), ..OpCall::new(&call.name, inputs) };
    let children = vec![light("empty"), Branch::new(inner, vec![light("resize_")])];
    Branch::new(call, children)
}

fn contiguous(call: OpCall) -> Branch {
    let Some(source) = call.tensor(0) else { return Branch::new(call, Vec::new()) };
    around("contiguous", vec![row_major(source)])
}

/// A sparse tensor added to a dense one: rows are added by index. `was` is what the CPU called.
pub(super) fn add_sparse(call: &OpCall, was: &[Branch]) -> Vec<Branch> {
    let find = |name: &str| was.iter().find(|child| child.name() == name).and_then(|c| c.call.output(0));
    let mut children: Vec<Branch> =
        ["_nnz", "result_type", "to", "_values", "to", "_indices", "sparse_dim", "is_coalesced"]
            .into_iter()
            .map(light)
            .collect();
    children.extend([view("squeeze"), light("view"), around("reshape", vec![light("view")])]);
    if let (Some(dense), Some(indices), Some(values)) =
        (call.tensor(0), find("aten::_indices"), find("aten::_values"))
    {
        let flat =
            Tensor { shape: [indices.numel() as i64][..].into(), strides: [1][..].into(), ..indices.clone() };
        let scale = call.inputs.get(2).cloned().unwrap_or(Arg::Int(1));
        let arg = |tensor: &Tensor| Arg::Tensor(tensor.clone());
        let inputs = vec![arg(dense), Arg::Int(0), arg(&flat), arg(values), scale];
        children.push(op("index_add_", inputs, Some(dense.clone())));
    }
    // Of the result to itself: nothing is copied.
    children.push(light("copy_"));
    children
}

/// The gradient of an embedding, dense: zeroed first. `was` is what the CPU called.
pub(super) fn embedding(call: &OpCall, was: Vec<Branch>) -> Vec<Branch> {
    let mut children: Vec<Branch> =
        was.into_iter().filter(|c| c.name() == "aten::contiguous").take(1).collect();
    children.push(light("view"));
    if let Some(Arg::Tensor(grad)) = call.outputs.first() {
        let mut zero = op("zero_", vec![Arg::Tensor(grad.clone())], Some(grad.clone()));
        zero.children = vec![fill(grad)];
        children.push(around("zeros", vec![light("empty"), zero]));
    }
    children
}
