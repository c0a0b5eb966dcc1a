//! Scaled-dot-product attention: in 32 bits with the memory-efficient kernels, in 16 bits with cuDNN's.

use super::branch::Branch;
use super::build::{around, empty_like, fill, light, op, row_major, view};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::memory_key::Place;

/// Names of the CPU's ops, as parts of longer names.
pub(super) const FORWARD: &str = "aten::_scaled_dot_product_flash_attention_for_cpu";
/// Gradient op of the CPU.
pub(super) const BACKWARD: &str = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";
/// Function of the backward engine around the gradient op.
pub(super) const FUNCTION: &str = "ScaledDotProductFlashAttentionForCpuBackward0";

/// Returns the implementation that PyTorch prefers on a GPU, given the query.
fn kind(query: &Tensor) -> &'static str {
    if matches!(query.dtype, Dtype::Bf16 | Dtype::F16) { "cudnn" } else { "efficient" }
}

/// Seed of a kernel's random numbers, which is unknown.
const SEED: Arg = Arg::None;

/// CPU's op if its fused kernel cannot compute attention: with dropout, or with a mask of another kind.
const PARTS: &str = "aten::_scaled_dot_product_attention_math";
/// Head sizes of the memory-efficient kernels must be multiples of these, in 32 and in 16 bits.
const ALIGNED: [i64; 2] = [4, 8];

/// Whether the CPU computed attention by parts, and CUDA has a kernel for it.
pub(super) fn at_once(call: &OpCall) -> bool {
    let [query, key, value] = [0, 1, 2].map(|at| call.tensor_at(at));
    let (true, Some(query), Some(key), Some(value)) = (call.name == PARTS, query, key, value) else {
        return false;
    };
    let narrow = matches!(query.dtype, Dtype::Bf16 | Dtype::F16);
    let aligned = ALIGNED[usize::from(narrow)];
    let fits = |tensor: &Tensor| {
        tensor.shape.len() == 4
            && tensor.numel() > 0
            && tensor.size(3) % aligned == 0
            && tensor.strides.last() == Some(&1)
            && tensor.dtype == query.dtype
    };
    (narrow || query.dtype == Dtype::F32) && [query, key, value].into_iter().all(fits)
}

/// Returns `(query, key, value, mask, dropout, causal, dropout mask, scale)` as a call of the CPU's kernel.
pub(super) fn whole(call: &OpCall) -> OpCall {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let inputs = vec![arg(0), arg(1), arg(2), arg(4), arg(5), arg(3), arg(7)];
    let outputs = vec![Arg::Tensor(result(call)), Arg::Tensor(sums(call))];
    OpCall { outputs, ..OpCall::new(FORWARD, inputs) }
}

/// Returns the gradient of such a call. `given` has the recorded gradients, in any order.
pub(super) fn whole_backward(call: &OpCall, gradient: Arg, mut given: Vec<Tensor>) -> OpCall {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let (result, sums) = (Arg::Tensor(result(call)), Arg::Tensor(sums(call)));
    let inputs = vec![gradient, arg(0), arg(1), arg(2), result, sums, arg(4), arg(5), arg(3), arg(7)];
    let of = |like: &Tensor| {
        let at = given.iter().position(|given| given.shape == like.shape);
        at.map_or_else(|| by_position(&like.shape, like), |at| given.swap_remove(at))
    };
    let outputs = (0..3).filter_map(|at| call.tensor_at(at)).map(of).map(Arg::Tensor).collect();
    OpCall { outputs, ..OpCall::new(BACKWARD, inputs) }
}

/// Returns `[batch, heads, length, dim]` with heads adjacent in memory, as the kernels write it.
pub(super) fn by_position(shape: &[i64], like: &Tensor) -> Tensor {
    let &[_, heads, length, dim] = shape else { return Tensor::contiguous(shape, like.dtype) };
    let strides = [heads * length * dim, dim, heads * dim, 1];
    Tensor::strided(shape, &strides, like.dtype)
}

fn result(call: &OpCall) -> Tensor {
    let like = || call.tensor_at(0).map(|query| by_position(&query.shape, query));
    call.output(0).cloned().or_else(like).unwrap_or_else(|| Tensor::contiguous(&[0], Dtype::F32))
}

/// Returns the sums of the softmax, with lengths padded to a multiple of 32 per head; they replace the tensor that the CPU saves for the gradient.
fn sums(call: &OpCall) -> Tensor {
    let query = call.tensor_at(0).map_or([1, 1, 1], |query| [query.size(0), query.size(1), query.size(2)]);
    let [batch, heads, length] = query;
    let shape = [batch, heads, (length.max(0) as u64).next_multiple_of(32) as i64];
    let kept = call.output(1).map_or(Place::UNKNOWN, |weights| weights.place);
    Tensor { place: kept, ..Tensor::contiguous(&shape, Dtype::F32) }
}

/// Returns the function's name on the GPU, given the ops inside it.
pub(super) fn function(branch: &Branch) -> Option<String> {
    let start = branch.name().strip_suffix(FUNCTION)?;
    let query = query_within(branch)?;
    let kind = if kind(query) == "cudnn" { "Cudnn" } else { "Efficient" };
    Some(format!("{start}ScaledDotProduct{kind}AttentionBackward0"))
}

fn query_within(branch: &Branch) -> Option<&Tensor> {
    if branch.name() == BACKWARD {
        return branch.call.tensor_at(1);
    }
    branch.children.iter().find_map(query_within)
}

/// Returns `[batch, heads, length, dim]` as `[batch, length, heads, dim]`, the input of the memory-efficient kernels.
fn swapped(tensor: Option<&Tensor>) -> Arg {
    let Some(mut tensor) = tensor.cloned() else { return Arg::None };
    if tensor.shape.len() == 4 {
        tensor.shape.swap(1, 2);
        tensor.strides.swap(1, 2);
    }
    Arg::Tensor(tensor)
}

/// Returns a call with its results.
fn called(name: &str, inputs: Vec<Arg>, outputs: Vec<Arg>) -> OpCall {
    OpCall { outputs, ..OpCall::new(&format!("aten::{name}"), inputs) }
}

/// Returns the ops for `(query, key, value, dropout, causal, mask, scale)`.
pub(super) fn forward(call: &OpCall) -> Option<Branch> {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let query = call.tensor_at(0)?;
    let outputs = call.outputs.clone();
    let mut outer = vec![arg(0), arg(1), arg(2), arg(5), Arg::Bool(true), arg(3), arg(4)];
    if kind(query) == "cudnn" {
        outer.push(Arg::Bool(false));
        let none = || Arg::None;
        let length = |at| Arg::Int(call.tensor_at(at).map_or(0, |t: &Tensor| t.size(2)));
        let inner = vec![
            arg(0),
            arg(1),
            arg(2),
            arg(5),
            none(),
            none(),
            length(0),
            length(1),
            Arg::Bool(true),
            arg(3),
            arg(4),
            Arg::Bool(false),
            arg(6),
        ];
        let like = around("empty_like", vec![light("empty_strided")]);
        let children = vec![light("empty"), light("empty"), like, light("empty")];
        let inner = Branch::new(called("_cudnn_attention_forward", inner, outputs.clone()), children);
        let outer = called("_scaled_dot_product_cudnn_attention", outer, outputs);
        return Some(Branch::new(outer, vec![inner]));
    }
    let causal = Arg::Int(i64::from(call.flag_at(4).unwrap_or(false)));
    let mut inner: Vec<Arg> = (0..3).map(|at| swapped(call.tensor_at(at))).collect();
    inner.push(arg(5));
    inner.extend([Arg::None, Arg::None, Arg::None, Arg::None, arg(3), causal, Arg::Bool(true), arg(6)]);
    let given = vec![swapped(call.output(0)), call.outputs.get(1).cloned().unwrap_or_default()];
    let inner = Branch::new(called("_efficient_attention_forward", inner, given), vec![light("empty"); 4]);
    let children = [vec![view("transpose"); 3], vec![inner, view("transpose")]].concat();
    Some(Branch::new(called("_scaled_dot_product_efficient_attention", outer, outputs), children))
}

/// Returns the ops for `(gradient, query, key, value, result, logsumexp, dropout, causal, mask, scale)`.
pub(super) fn backward(call: &OpCall) -> Option<Branch> {
    let (grad, query, key) = (call.tensor_at(0)?, call.tensor_at(1)?, call.tensor_at(2)?);
    let lengths = [query, key].map(|tensor| Arg::Int(tensor.size(2)));
    Some(if kind(query) == "cudnn" {
        cudnn_backward(call, lengths)
    } else {
        efficient_backward(call, grad, lengths)
    })
}

/// Returns the gradients with cuDNN: one call, with the arguments of the op around it.
fn cudnn_backward(call: &OpCall, lengths: [Arg; 2]) -> Branch {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let outputs = call.outputs.clone();
    let mut inputs: Vec<Arg> = (0..6).map(arg).collect();
    inputs.extend([SEED, SEED, arg(8), Arg::None, Arg::None]);
    inputs.extend(lengths);
    inputs.extend([arg(6), arg(7), arg(9)]);
    let like = || around("empty_like", vec![light("empty_strided")]);
    let children = vec![like(), like(), like(), light("empty")];
    let inner = Branch::new(called("_cudnn_attention_backward", inputs.clone(), outputs.clone()), children);
    let outer = called("_scaled_dot_product_cudnn_attention_backward", inputs, outputs);
    Branch::new(outer, vec![inner])
}

/// Returns the gradients with the memory-efficient kernels, which have heads and positions in the opposite order.
fn efficient_backward(call: &OpCall, grad: &Tensor, lengths: [Arg; 2]) -> Branch {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let mut inner: Vec<Arg> = (0..4).map(|at| swapped(call.tensor_at(at))).collect();
    let causal = Arg::Int(i64::from(call.flag_at(7).unwrap_or(false)));
    inner.extend([arg(8), swapped(call.tensor_at(4)), Arg::None, Arg::None]);
    inner.extend(lengths);
    inner.extend([arg(5), arg(6), SEED, SEED, causal, Arg::Bool(false), arg(9)]);
    let given = (0..3).map(|at| swapped(call.output(at))).collect();
    let mut children: Vec<Branch> = Vec::new();
    if let Arg::Tensor(grad) = swapped(call.tensor_at(0))
        && !grad.is_contiguous()
    {
        children.push(around("contiguous", vec![row_major(&grad)]));
    }
    children.extend(["empty", "empty", "empty", "to", "to"].map(light));
    children.extend(summed_products(call, grad));
    let inner = Branch::new(called("_efficient_attention_backward", inner, given), children);
    let mask = Arg::Ints([1i64, 1, 1, 0][..].into());
    let mut outer = vec![arg(0), arg(1), arg(2), arg(3), arg(8), arg(4), arg(5), SEED, SEED];
    outer.extend([arg(6), mask, arg(7), arg(9)]);
    let children = [vec![view("transpose"); 5], vec![inner], vec![view("transpose"); 3]].concat();
    let outer = called("_scaled_dot_product_efficient_attention_backward", outer, call.outputs.clone());
    Branch::new(outer, children)
}

/// Returns the ops for the product of gradient and result, summed and rearranged by head: the input of the softmax's gradient.
fn summed_products(call: &OpCall, grad: &Tensor) -> [Branch; 6] {
    let mut shape = grad.shape.clone();
    if shape.len() == 4 {
        shape.swap(1, 2);
    }
    let product = Tensor::contiguous(&shape, grad.dtype);
    let sums = Tensor::contiguous(&shape[..shape.len().saturating_sub(1)], grad.dtype);
    let by_head = Tensor::contiguous(&grad.shape[..grad.shape.len().saturating_sub(1)], grad.dtype);
    let mut turned = sums.clone();
    if turned.shape.len() == 3 {
        turned.shape.swap(1, 2);
        turned.strides.swap(1, 2);
    }
    let dense = |tensor: &Tensor| Arg::Tensor(tensor.clone());
    let factors = vec![swapped(call.tensor_at(0)), swapped(call.tensor_at(4))];
    let last = Arg::Ints([-1i64][..].into());
    let mut sum = op("sum", vec![dense(&product), last, Arg::Bool(false), Arg::None], Some(sums));
    sum.children = vec![light("as_strided")];
    let copy =
        op("copy_", vec![dense(&by_head), Arg::Tensor(turned), Arg::Bool(false)], Some(by_head.clone()));
    let mut zero = op("zero_", vec![dense(&product)], Some(product.clone()));
    zero.children = vec![fill(&product)];
    [
        op("mul", factors, Some(product)),
        sum,
        view("transpose"),
        around("contiguous", vec![around("clone", vec![empty_like(), copy])]),
        light("empty"),
        zero,
    ]
}
