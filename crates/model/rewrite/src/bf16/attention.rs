//! Attention in 16 bits: cuDNN's kernels replace the memory-efficient kernels of 32 bits, as PyTorch prefers since Hopper.

use rustc_hash::FxHashMap;
use steptime_aten::{Arg, Dtype, Tensor};
use steptime_step::{Call, NewOp, OpId, Patch, StepIr, TensorId};

use super::replaced::{op, replace, tensor};

const EFFICIENT: &str = "aten::_scaled_dot_product_efficient_attention";
const EFFICIENT_BACKWARD: &str = "aten::_scaled_dot_product_efficient_attention_backward";
/// Maximum head size of cuDNN's kernels, and its required multiple.
const WIDEST: i64 = 128;
const ALIGNED: i64 = 8;

/// Whether a step has any attention that may be replaced.
pub(super) fn is_in(step: &StepIr) -> bool {
    step.running().into_iter().any(|op| [EFFICIENT, EFFICIENT_BACKWARD].contains(&&*step.ops[op].name))
}

/// The patch that replaces memory-efficient attention by cuDNN's kernels, where it would now run in 16 bits. Empty where there is none. `step` has
/// its 16-bit types already.
pub(super) fn patch(step: &StepIr, rule: &'static str) -> Patch {
    let mut patch = Patch::new(rule);
    let mut sums = FxHashMap::default();
    let calls = |name: &'static str| {
        let of = move |op: OpId| Some((op, step.ops[op].call.as_deref()?));
        step.running().into_iter().filter(move |&op| step.ops[op].name == name).filter_map(of)
    };
    for (op, call) in calls(EFFICIENT).filter(|(_, call)| fits(step, call, 0)) {
        let new = forward(step, call, &mut patch, &mut sums);
        new.into_iter().for_each(|new| replace(&mut patch, op, new));
    }
    for (op, call) in calls(EFFICIENT_BACKWARD).filter(|(_, call)| fits(step, call, 1)) {
        let new = backward(step, call, &mut patch, &mut sums);
        new.into_iter().for_each(|new| replace(&mut patch, op, new));
    }
    patch
}

/// The new log-sum-exp tensors for the gradients, by the output of the attention, which the gradient takes too.
type Sums = FxHashMap<TensorId, TensorId>;

/// The replacement of a call with `(query, key, value, bias, log of sums?, dropout, causal, scale)`. Its log of sums is a new tensor.
fn forward(step: &StepIr, call: &Call, patch: &mut Patch, sums: &mut Sums) -> Option<NewOp> {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let (query, key) = (tensor(call, 0)?, tensor(call, 1)?);
    let result = call.outputs.first()?.clone();
    let new = log_of_sums(step, query, patch);
    sums.extend(result.tensors().iter().map(|&result| (result, new)));
    let seeds = call.outputs.get(2..4).unwrap_or_default();
    let outputs = [&[result, Arg::Tensor(new)], &[const { Arg::None }; 4][..], seeds].concat();
    let flags = [arg(4), arg(5), arg(6), Arg::Bool(false), arg(7)];
    let inner = [
        vec![arg(0), arg(1), arg(2), arg(3)],
        vec![Arg::None; 2],
        lengths(step, [query, key]),
        flags.to_vec(),
    ];
    let outer = [vec![arg(0), arg(1), arg(2), arg(3)], flags.to_vec()];
    let inner = op("aten::_cudnn_attention_forward", inner.concat(), outputs.clone());
    Some(op("aten::_scaled_dot_product_cudnn_attention", outer.concat(), outputs).with(vec![inner]))
}

/// The replacement of a call with `(gradient, query, key, value, bias, result, log of sums, seed, offset, dropout, mask, causal, scale)`.
fn backward(step: &StepIr, call: &Call, patch: &mut Patch, sums: &mut Sums) -> Option<NewOp> {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let (query, key) = (tensor(call, 1)?, tensor(call, 2)?);
    // Where the forward pass is unknown, they are older than the step.
    let sums = *sums.entry(tensor(call, 5)?).or_insert_with(|| log_of_sums(step, query, patch));
    let inputs = [
        vec![arg(0), arg(1), arg(2), arg(3), arg(5), Arg::Tensor(sums), arg(7), arg(8), arg(4)],
        vec![Arg::None; 2],
        lengths(step, [query, key]),
        vec![arg(9), arg(11), arg(12)],
    ]
    .concat();
    let outputs: Vec<_> = call.outputs.iter().take(3).cloned().collect();
    let inner = op("aten::_cudnn_attention_backward", inputs.clone(), outputs.clone());
    Some(op("aten::_scaled_dot_product_cudnn_attention_backward", inputs, outputs).with(vec![inner]))
}

/// A tensor `[batch, heads, length]`, for queries `[batch, heads, length, dim]`.
fn log_of_sums(step: &StepIr, query: TensorId, patch: &mut Patch) -> TensorId {
    let shape: Vec<i64> = step.tensors[query].value.shape.iter().take(3).copied().collect();
    patch.tensor(step, Tensor::contiguous(&shape, Dtype::F32))
}

/// The lengths of queries and keys, `[batch, heads, length, dim]`.
fn lengths(step: &StepIr, tensors: [TensorId; 2]) -> Vec<Arg<TensorId>> {
    tensors.iter().map(|&tensor| Arg::Int(step.tensors[tensor].value.size(2))).collect()
}

/// Whether cuDNN supports the query at an argument position of a call.
fn fits(step: &StepIr, call: &Call, at: usize) -> bool {
    let Some(query) = tensor(call, at) else { return false };
    let query = &step.tensors[query].value;
    let dim = query.size(-1);
    matches!(query.dtype, Dtype::Bf16 | Dtype::F16)
        && query.shape.len() == 4
        && dim <= WIDEST
        && dim % ALIGNED == 0
}
