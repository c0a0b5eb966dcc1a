//! What CUDA's implementation of each op calls, where the CPU's calls something else.
//!
//! An op that has no rule and launches a kernel on the GPU keeps of its children those that launch nothing: views
//! and allocations. An op that launches nothing itself keeps all its children, each rewritten in turn.

use std::collections::BTreeSet;

use super::branch::Branch;
use super::build::{around, empty_like, fill, light, op, view};
use super::{attention, batch_norm, convolution, dropout, foreach, indexing, product, recurrent};
use crate::call::{Arg, OpCall, Tensor};
use crate::derive::TreeKind;
use crate::ops::Lowered;
use crate::registry;

/// Names that only the CPU's backends have.
const CPU_ONLY: [&str; 4] = ["mkldnn", "onednn", "_for_cpu", "mkl_"];

/// Backward functions that have another name on the GPU, where the op is inside.
const RENAMED: [(&str, &str, &str); 2] = [
    ("NativeBatchNormBackward0", "CudnnBatchNormBackward0", "aten::cudnn_batch_norm_backward"),
    ("MkldnnConvolutionBackward0", "ConvolutionBackward0", "aten::convolution_backward"),
];

/// Rewrites a node and what is inside it; notes names that have no counterpart.
pub(super) fn rewrite(mut branch: Branch, unknown: &mut BTreeSet<String>) -> Branch {
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
    if branch.kind == TreeKind::Op {
        branch = match own(branch, unknown) {
            Ok(done) => return done,
            Err(branch) => branch,
        };
        if CPU_ONLY.iter().any(|name| branch.name().contains(name)) {
            unknown.insert(branch.name().into());
        }
        let leaf = matches!(registry::lower(&branch.call), Lowered::Kernel(_));
        let name = branch.call.name.clone();
        branch.children.retain(|child| !child.name().starts_with("aten::resolve_"));
        if leaf {
            branch.children.retain(|child| child.name() == name || is_light(child) || stays(&name, child));
        }
    }
    branch.children = branch.children.into_iter().map(|child| rewrite(child, unknown)).collect();
    for (from, to, op) in RENAMED {
        if let Some(start) = branch.call.name.strip_suffix(from)
            && branch.has(op)
        {
            branch.call.name = format!("{start}{to}");
        }
    }
    branch
}

/// Whether a leaf has this child on the GPU too: gradients are zeroed before, losses are reduced after its own
/// kernel; the first power is a copy; what autograd needs is kept from an op in place.
fn stays(name: &str, child: &Branch) -> bool {
    let loss = name.contains("_loss") || name.contains("cross_entropy");
    let copied = name == "aten::pow" && child.name() == "aten::copy_";
    let kept = name.ends_with('_') && child.name() == "aten::clone";
    child.name() == "aten::zero_"
        || copied
        || kept
        || (loss && matches!(child.name(), "aten::mean" | "aten::sum"))
}

/// Whether nothing in it launches anything.
fn is_light(branch: &Branch) -> bool {
    let lowered = registry::lower(&branch.call);
    let nothing = registry::find(branch.name()).is_some() && lowered == Lowered::Nothing;
    match branch.name() {
        // With ops inside, the CPU converts a number.
        "aten::to" => branch.children.is_empty(),
        _ if matches!(lowered, Lowered::Kernel(_)) => false,
        _ => (nothing || !branch.children.is_empty()) && branch.children.iter().all(is_light),
    }
}

/// The gradient of a softmax sums the products of gradient and result, which are there first.
fn softmax_backward(call: &OpCall) -> Vec<Branch> {
    let (Some(grad), Some(result)) = (call.tensor(0), call.tensor(1)) else { return Vec::new() };
    let product = Tensor::contiguous(&grad.shape, grad.dtype);
    let both = [grad, result].map(|tensor| Arg::Tensor(tensor.clone()));
    vec![op("mul", both.into(), Some(product))]
}

/// The rules, op by op. An op without one comes back as it was.
fn own(mut branch: Branch, unknown: &mut BTreeSet<String>) -> Result<Branch, Branch> {
    let call = &branch.call;
    let children = match call.name.as_str() {
        name if recurrent::is_made(name) => return Ok(branch),
        // Without cuBLASLt, which takes no vectors, the bias is copied to the output first.
        "aten::addmm" => {
            let vector = call.tensor(2).is_none_or(|b| b.size(0) <= 1 || b.size(1) <= 1);
            let mut children = if vector { vec![view("expand")] } else { Vec::new() };
            children.extend(product::operands(call, 1));
            children
        }
        "aten::mm" | "aten::bmm" => product::operands(call, 0).collect(),
        "aten::baddbmm" => product::operands(call, 1).collect(),
        "aten::_foreach_norm" => foreach::norm(call),
        "aten::_embedding_bag" | "aten::_embedding_bag_forward_only" => vec![light("empty"); 4],
        "aten::_embedding_bag_backward" => {
            let inner = branch.children.into_iter().filter(|c| c.name().starts_with("aten::_embedding_bag_"));
            inner.map(|child| rewrite(child, unknown)).collect()
        }
        "aten::index_select" => indexing::select(call),
        "aten::_index_put_impl_" if call.flag(3) == Some(true) => indexing::put(call),
        "aten::add" if branch.children.iter().any(|child| child.name() == "aten::_nnz") => {
            indexing::add_sparse(call, &branch.children)
        }
        "aten::cat" => Vec::new(),
        // Over all dimensions.
        "aten::mean" if call.inputs.len() <= 2 => {
            let mut inner = call.clone();
            inner.inputs.resize(1, Arg::None);
            inner.inputs.extend([Arg::Ints([][..].into()), Arg::Bool(false), Arg::None]);
            vec![Branch::new(inner, vec![light("as_strided")])]
        }
        "aten::mean" if call.ints(1).is_none_or(|dims| dims.is_empty()) => vec![light("as_strided")],
        "aten::mean" => Vec::new(),
        "aten::zero_" => call.tensor(0).map(fill).into_iter().collect(),
        "aten::_convolution" | "aten::_convolution_mode" => convolution::forward(call),
        "aten::convolution_backward" => convolution::backward(call),
        "aten::_batch_norm_impl_index" => {
            let norm = branch.children.iter().find(|child| child.name() == "aten::native_batch_norm");
            let Some(norm) = norm else { return Err(branch) };
            let mut norm = norm.clone();
            let empty = || light("empty");
            if batch_norm::by_cudnn(call) {
                norm.call.name = "aten::cudnn_batch_norm".into();
                norm.children = vec![empty_like(), empty(), empty(), light("view"), empty(), empty()];
                vec![norm]
            } else {
                norm.children = vec![around("empty_like", vec![light("empty_strided")]), empty(), empty()];
                norm.children.extend(batch_norm::semaphores(call.tensor(0)));
                vec![empty(), norm]
            }
        }
        "aten::native_batch_norm_backward" if !batch_norm::backward_by_cudnn(call) => {
            let mut children = vec![light("empty"); 4];
            children.extend(batch_norm::semaphores(call.tensor(1)));
            children.push(around("empty_like", vec![light("empty_strided")]));
            children
        }
        "aten::native_batch_norm_backward" => {
            branch.call.name = "aten::cudnn_batch_norm_backward".into();
            // Its arguments: input and gradient change places.
            if branch.call.inputs.len() > 1 {
                branch.call.inputs.swap(0, 1);
            }
            let empty = || light("empty");
            vec![empty(), empty(), empty(), light("view"), empty()]
        }
        "aten::native_layer_norm_backward" => vec![light("empty"); 3],
        "aten::hardtanh_backward" => vec![light("empty")],
        "aten::log_sigmoid_forward" => {
            vec![around("empty_like", vec![light("empty_strided")]), light("empty")]
        }
        "aten::bincount" => indexing::count(call),
        "aten::embedding_dense_backward" => indexing::embedding(call, branch.children),
        "aten::_embedding_bag_dense_backward" => indexing::bags(call),
        "aten::_softmax_backward_data" => softmax_backward(call),
        // Where it was made for the device: a number among the operands of a kernel, in a tensor.
        "aten::scalar_tensor" if matches!(call.inputs.get(3), Some(Arg::Text(_))) => {
            let filled = call.output(0).map(fill);
            [light("empty")].into_iter().chain(filled).collect()
        }
        "aten::nll_loss_forward" => vec![light("resize_")],
        "aten::dropout" if branch.children.iter().any(|child| child.name() == "aten::bernoulli_") => {
            vec![dropout::forward(call)]
        }
        _ => return Err(branch),
    };
    branch.children = children;
    Ok(branch)
}
