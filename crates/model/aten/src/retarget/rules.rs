//! Ops that CUDA's implementation of each op calls, if the CPU's calls others.
//!
//! An op that has no rule and launches a kernel on the GPU keeps only the children that launch nothing: views
//! and allocations. An op that launches nothing itself keeps all its children, each rewritten in turn.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use steptime_graph::execution::NodeId;

use super::branch::Branch;
use super::build::{around, fill, light, op, to_device, view};
use super::{
    attention, autocast, batch_norm, convolution, dropout, foreach, indexing, product, recurrent, sparse,
};
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::derive::TreeKind;
use crate::dtype::Dtype;
use crate::op_def::Lowering;
use crate::op_set::OpSet;
use crate::ops::concat::LISTED_NUMBERS;

/// Parts of names that only the CPU's backends have.
const CPU_ONLY: [&str; 4] = ["mkldnn", "onednn", "_for_cpu", "mkl_"];

/// Backward functions with another name on the GPU, if this op is inside.
const RENAMED: [(&str, &str, &str); 2] = [
    ("NativeBatchNormBackward0", "CudnnBatchNormBackward0", "aten::cudnn_batch_norm_backward"),
    ("MkldnnConvolutionBackward0", "ConvolutionBackward0", "aten::convolution_backward"),
];

/// Rewriter of trees of ops, with the definitions of a set of ops.
pub(super) struct Rewrite<'o> {
    ops: &'o OpSet,
    /// Products whose sparse matrix is not coalesced.
    uncoalesced: BTreeSet<NodeId>,
    /// Names without a counterpart on the GPU.
    pub unknown: BTreeSet<String>,
}

impl<'o> Rewrite<'o> {
    pub fn new(ops: &'o OpSet, uncoalesced: BTreeSet<NodeId>) -> Rewrite<'o> {
        Rewrite { ops, uncoalesced, unknown: BTreeSet::new() }
    }

    /// Returns a node and the nodes inside it as they are on the GPU.
    pub fn one(&mut self, mut branch: Branch) -> Branch {
        if let Some(name) = attention::function(&branch) {
            branch.call.name = name;
        }
        let moved = match branch.name() {
            attention::FORWARD => attention::forward(&branch.call),
            attention::BACKWARD => attention::backward(&branch.call),
            _ => None,
        };
        if let Some(moved) = moved {
            return moved;
        }
        if branch.kind == TreeKind::Op && !autocast::calls_again(&branch) {
            branch = match self.by_rule(branch) {
                ControlFlow::Break(done) => return done,
                ControlFlow::Continue(branch) => branch,
            };
            if CPU_ONLY.iter().any(|name| branch.name().contains(name)) {
                self.unknown.insert(branch.name().into());
            }
            self.drop_cpu_work(&mut branch);
        }
        branch.children = branch.children.into_iter().map(|child| self.one(child)).collect();
        for (from, to, op) in RENAMED {
            if let Some(start) = branch.call.name.strip_suffix(from)
                && branch.has(op)
            {
                branch.call.name = format!("{start}{to}");
            }
        }
        branch
    }

    /// Removes the ops that the CPU calls inside an op that launches a kernel itself.
    fn drop_cpu_work(&self, branch: &mut Branch) {
        branch.children.retain(|child| !child.name().starts_with("aten::resolve_"));
        if matches!(self.ops.lower(&branch.call), Lowering::Kernel(_)) {
            let name = branch.call.name.clone();
            let kept = |child: &Branch| child.name() == name || self.is_light(child) || stays(&name, child);
            branch.children.retain(kept);
        }
    }

    /// Whether nothing inside it launches anything.
    fn is_light(&self, branch: &Branch) -> bool {
        let lowered = self.ops.lower(&branch.call);
        let nothing = self.ops.find(branch.name()).is_some() && lowered == Lowering::Nothing;
        match branch.name() {
            // If there are ops inside, the CPU converts a number.
            "aten::to" => branch.children.is_empty(),
            _ if matches!(lowered, Lowering::Kernel(_)) => false,
            _ => {
                (nothing || !branch.children.is_empty())
                    && branch.children.iter().all(|child| self.is_light(child))
            }
        }
    }

    /// Applies the rules to an op. An op without a rule is returned unchanged.
    fn by_rule(&mut self, branch: Branch) -> ControlFlow<Branch, Branch> {
        let name = branch.call.name.as_str();
        if recurrent::is_made(name) {
            return ControlFlow::Break(branch);
        }
        if name == "aten::_embedding_bag_backward" {
            let inner = branch.children.into_iter().filter(|c| c.name().starts_with("aten::_embedding_bag_"));
            let children = inner.map(|child| self.one(child)).collect();
            return ControlFlow::Break(Branch { children, ..branch });
        }
        if let Some(norm) = batch_norm::rewritten(&branch) {
            return ControlFlow::Break(norm);
        }
        if name == "aten::addmm" && sparse::is_product(&branch.call) {
            let coalesced = branch.origin.is_none_or(|origin| !self.uncoalesced.contains(&origin));
            return ControlFlow::Break(Branch {
                children: sparse::product(&branch.call, coalesced),
                ..branch
            });
        }
        match children(&branch, self.ops) {
            Some(children) => ControlFlow::Break(Branch { children, ..branch }),
            None => ControlFlow::Continue(branch),
        }
    }
}

/// Whether a leaf has this child on the GPU too: gradients are set to zero before, losses are reduced after the leaf's own
/// kernel; the first power is a copy; an in-place op clones what autograd needs.
fn stays(name: &str, child: &Branch) -> bool {
    let loss = name.contains("_loss") || name.contains("cross_entropy");
    let copied = name == "aten::pow" && child.name() == "aten::copy_";
    let kept = name.ends_with('_') && child.name() == "aten::clone";
    child.name() == "aten::zero_"
        || copied
        || kept
        || (loss && matches!(child.name(), "aten::mean" | "aten::sum"))
}

/// Returns the ops that an op calls on the GPU; `None` if there is no rule for it.
fn children(branch: &Branch, ops: &OpSet) -> Option<Vec<Branch>> {
    let call = &branch.call;
    let like = || around("empty_like", vec![light("empty_strided")]);
    Some(match call.name.as_str() {
        // Without cuBLASLt, which does not support vectors, the bias is copied to the output first.
        "aten::addmm" => {
            let vector = call.tensor_at(2).is_none_or(|b| b.size(0) <= 1 || b.size(1) <= 1);
            let spread = vector.then(|| view("expand"));
            spread.into_iter().chain(product::operands(call, 1)).collect()
        }
        "aten::mm" if sparse::is_product(call) => return None,
        "aten::_coalesce" => sparse::merging(call),
        "aten::mm" | "aten::bmm" => product::operands(call, 0).collect(),
        "aten::baddbmm" => product::operands(call, 1).collect(),
        "aten::_foreach_norm" => foreach::norm(call),
        "aten::_embedding_bag" | "aten::_embedding_bag_forward_only" => vec![light("empty"); 4],
        "aten::index_select" => indexing::select(call, ops),
        "aten::_index_put_impl_" if call.flag_at(3) == Some(true) => indexing::put(call, ops),
        "aten::add" if branch.children.iter().any(|child| child.name() == "aten::_nnz") => {
            indexing::add_sparse(call, &branch.children)
        }
        "aten::cat" => Vec::new(),
        "aten::_chunk_cat" => listed(call.tensors_at(0)),
        "aten::split_with_sizes_copy" if !call.tensors_at(3).is_empty() => listed(call.tensors_at(3)),
        "aten::mean" => mean(call),
        "aten::zero_" => call.tensor_at(0).map(fill).into_iter().collect(),
        "aten::_convolution" | "aten::_convolution_mode" => convolution::forward(call),
        "aten::convolution_backward" => convolution::backward(call),
        "aten::native_layer_norm_backward" => vec![light("empty"); 3],
        "aten::hardtanh_backward" => vec![light("empty")],
        "aten::log_sigmoid_forward" => vec![like(), light("empty")],
        "aten::bincount" => indexing::count(call),
        "aten::embedding_dense_backward" => indexing::embedding(call, &branch.children),
        "aten::_embedding_bag_dense_backward" => indexing::bags(call),
        "aten::_softmax_backward_data" => softmax_backward(call, ops),
        // If it was created for the device: a scalar operand of a kernel, in a tensor.
        "aten::scalar_tensor" if matches!(call.inputs.get(3), Some(Arg::Text(_))) => {
            let filled = call.output(0).map(fill);
            [light("empty")].into_iter().chain(filled).collect()
        }
        "aten::nll_loss_forward" => vec![light("resize_")],
        "aten::dropout" if dropout::draws(branch) => vec![dropout::forward(call, &branch.children)],
        _ => return None,
    })
}

/// Returns the ops that first copy the metadata of a copy over a list to the device.
fn listed(list: &[Tensor]) -> Vec<Branch> {
    let count = LISTED_NUMBERS * list.len() as i64;
    let host = Tensor { device: Device::Pinned, ..Tensor::contiguous(&[count], Dtype::I64) };
    vec![op("empty", vec![Arg::Ints([count][..].into())], Some(host.clone())), to_device(host, true)]
}

/// Returns the ops inside a mean; over all dimensions it calls the form with dimensions.
fn mean(call: &OpCall) -> Vec<Branch> {
    if call.inputs.len() <= 2 {
        let mut inner = call.clone();
        inner.inputs.resize(1, Arg::None);
        inner.inputs.extend([Arg::Ints([][..].into()), Arg::Bool(false), Arg::None]);
        return vec![Branch::new(inner, vec![light("as_strided")])];
    }
    let whole = call.ints_at(1).is_none_or(|dims| dims.is_empty());
    if whole { vec![light("as_strided")] } else { Vec::new() }
}

/// Returns the product of gradient and result that the gradient of a softmax calls, in new memory.
fn softmax_backward(call: &OpCall, ops: &OpSet) -> Vec<Branch> {
    let product = |call: OpCall| {
        let shape = call.tensor_at(0).map(|grad| Tensor::contiguous(&grad.shape, grad.dtype));
        Branch::new(OpCall { outputs: shape.map(Arg::Tensor).into_iter().collect(), ..call }, Vec::new())
    };
    ops.expand(call).into_iter().map(product).collect()
}
