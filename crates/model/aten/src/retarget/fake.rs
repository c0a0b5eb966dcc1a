//! Ops whose shapes only were computed: the ops that they would have called are missing.

use steptime_graph::execution::{ExecutionGraph, NodeId};

use super::branch::Branch;
use super::build::{light, op};
use super::{attention, dropout};
use crate::call::{Arg, OpCall, Tensor};
use crate::derive::{TreeKind, is_dispatched};
use crate::dtype::Dtype;
use crate::op_def::Lowering;
use crate::op_set::OpSet;

/// Maximum depth of ops that call others.
const DEEPEST: usize = 8;
/// Ops that create a fake result.
const OWN: [&str; 4] = ["aten::empty_strided", "aten::empty", "aten::set_", "aten::detach"];
/// Op that shows whose memory a saved tensor has; and the function in which it is PyTorch's own.
const SHOWN: &str = "aten::detach";
const OWN_DETACH: &str = "AccumulateGrad";
/// Gradient of bags: gradient, indices, offsets, the bag of each lookup.
const BAGS_GRADIENT: &str = "aten::_embedding_bag_backward";
const BAGS_GRADIENT_INDICES: usize = 1;
const BAGS_GRADIENT_BAG: usize = 3;

/// Adds the ops that an op calls, if none were recorded inside.
pub(super) fn expand(trace: &ExecutionGraph, ops: &OpSet, branches: &mut [Branch]) {
    let mut sparse = Vec::new();
    branches.iter().for_each(|branch| gradients(branch, &mut sparse));
    branches.iter_mut().for_each(|branch| one(trace, ops, branch, &sparse));
}

/// Tables with a sparse gradient, by shape, with the indices of its rows.
type Sparse = Vec<(Tensor, Tensor)>;

fn gradients(branch: &Branch, found: &mut Sparse) {
    let gives = branch.call.output(0).filter(|given| given.is_sparse());
    let of_table = matches!(branch.name(), BAGS_GRADIENT | "aten::embedding_sparse_backward");
    if let (true, Some(table), Some(indices)) =
        (of_table, gives, branch.call.tensor_at(BAGS_GRADIENT_INDICES))
    {
        found.push((table.clone(), indices.clone()));
    }
    branch.children.iter().for_each(|child| gradients(child, found));
}

fn one(trace: &ExecutionGraph, ops: &OpSet, branch: &mut Branch, sparse: &Sparse) {
    let dispatched = branch.origin.is_some_and(|origin| is_dispatched(trace, origin));
    if dispatched {
        branch.children.retain(|child| !OWN.contains(&child.name()));
    }
    if dispatched && branch.children.is_empty() {
        branch.children = added(&branch.call, sparse).unwrap_or_else(|| inside(ops, &branch.call, DEEPEST));
    } else if branch.origin.is_some_and(|origin| is_on_meta(trace, origin)) && !dropout::draws(branch) {
        let called = inside(ops, &branch.call, DEEPEST);
        let recorded = |other: &Branch| branch.children.iter().any(|child| child.name() == other.name());
        // The meta device computes a shape in other ways than a GPU computes. Attention by parts is replaced later.
        let by_parts = branch.children.iter().any(|child| attention::at_once(&child.call));
        if !by_parts && !called.is_empty() && !called.iter().any(recorded) {
            branch.children = called;
        }
    }
    if branch.kind == TreeKind::Function && !branch.name().contains(OWN_DETACH) {
        let shown = |child: &Branch| {
            child.name() == SHOWN && child.origin.is_some_and(|origin| is_dispatched(trace, origin))
        };
        branch.children.retain(|child| !shown(child));
    }
    branch.children.iter_mut().for_each(|child| one(trace, ops, child, sparse));
}

/// Whether an op ran on the `meta` device itself.
fn is_on_meta(trace: &ExecutionGraph, node: NodeId) -> bool {
    trace.input_tensors(node).any(|(_, tensor)| trace.name(trace.tensors.get(tensor).device) == "meta")
}

/// Returns the addition of a sparse gradient to its table. Only the op that made the gradient has the indices of its rows.
fn added(call: &OpCall, sparse: &Sparse) -> Option<Vec<Branch>> {
    let gradient = call.tensor_at(1).filter(|other| call.name == "aten::add_" && other.is_sparse())?;
    let (_, indices) = sparse.iter().find(|(table, _)| table.shape == gradient.shape)?;
    let count = i64::try_from(indices.numel()).unwrap_or(i64::MAX);
    let places = Tensor::contiguous(&[1, count], Dtype::I64);
    let values = Tensor::contiguous(&[count, gradient.size(-1)], gradient.dtype);
    let giving = |name: &str, tensor: Tensor| {
        let outputs = vec![Arg::Tensor(tensor)];
        Branch::new(OpCall { outputs, ..OpCall::new(name, Vec::new()) }, Vec::new())
    };
    let children = vec![light("_nnz"), giving("aten::_indices", places), giving("aten::_values", values)];
    let inner = OpCall { name: "aten::add".into(), ..call.clone() };
    Some(vec![Branch::new(inner, children)])
}

fn inside(ops: &OpSet, call: &OpCall, depth: usize) -> Vec<Branch> {
    // The CPU's own name of the called op; other rules rewrite it further.
    if call.name == "aten::convolution" {
        let switches = [false, false, true, true].map(Arg::Bool);
        let inputs = call.inputs.iter().take(9).cloned().chain(switches).collect();
        let inner = OpCall { outputs: call.outputs.clone(), ..OpCall::new("aten::_convolution", inputs) };
        return vec![Branch::new(inner, Vec::new())];
    }
    let result = call.output(0).cloned();
    match (call.name.as_str(), result) {
        ("aten::relu", result) => {
            return vec![op(
                "clamp_min",
                vec![call.inputs.first().cloned().unwrap_or_default(), Arg::Int(0)],
                result,
            )];
        }
        // Nothing is written for classes other than the label, or pixels other than the largest.
        (
            "aten::nll_loss_backward"
            | "aten::nll_loss2d_backward"
            | "aten::max_pool2d_with_indices_backward",
            Some(result),
        ) => {
            return vec![op("zero_", vec![Arg::Tensor(result.clone())], Some(result))];
        }
        _ => {}
    }
    if depth == 0 || ops.lower(call) != Lowering::Children {
        return Vec::new();
    }
    let mut call = call.clone();
    if call.name == BAGS_GRADIENT
        && let (Some(indices), Some(Arg::Tensor(bag))) =
            (call.tensor_at(BAGS_GRADIENT_INDICES).cloned(), call.inputs.get_mut(BAGS_GRADIENT_BAG))
        && bag.numel() == 0
    {
        // The CPU does not compute the bag of each lookup.
        *bag = Tensor::contiguous(&indices.shape, bag.dtype);
    }
    let called = ops.expand(&call).into_iter();
    called
        .map(|call| (inside(ops, &call, depth - 1), call))
        .map(|(children, call)| Branch::new(call, children))
        .collect()
}
