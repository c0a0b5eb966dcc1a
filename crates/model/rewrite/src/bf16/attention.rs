//! Attention in 16 bits: what the memory-efficient kernels computed in 32, cuDNN's do, as PyTorch prefers since Hopper.

use rustc_hash::FxHashMap;
use steptime_aten::{Arg, Dtype, Tensor};
use steptime_step::{Call, NewOp, OpId, Patch, Place, Step, TensorId};

const EFFICIENT: &str = "aten::_scaled_dot_product_efficient_attention";
const EFFICIENT_BACKWARD: &str = "aten::_scaled_dot_product_efficient_attention_backward";
/// The widest head that cuDNN's kernels take, and what it must be a multiple of.
const WIDEST: i64 = 128;
const ALIGNED: i64 = 8;

/// Whether a step has any attention that could be another.
pub(super) fn is_in(step: &Step) -> bool {
    step.running().into_iter().any(|op| [EFFICIENT, EFFICIENT_BACKWARD].contains(&&*step.ops[op].name))
}

/// The patch that puts cuDNN's kernels in the place of the memory-efficient ones, where these would now run in 16 bits and
/// nothing is added to the scores. Empty where there are none. `step` has its types already.
pub(super) fn patch(step: &Step, rule: &'static str) -> Patch {
    let mut patch = Patch::new(rule);
    let mut sums = FxHashMap::default();
    for op in step.running() {
        let Some(call) = step.ops[op].call.as_deref().filter(|_| step.ops[op].name == EFFICIENT) else {
            continue;
        };
        if let Some(new) = forward(step, call, &mut patch, &mut sums) {
            replace(&mut patch, op, new);
        }
    }
    for op in step.running() {
        let Some(call) = step.ops[op].call.as_deref().filter(|_| step.ops[op].name == EFFICIENT_BACKWARD)
        else {
            continue;
        };
        if let Some(new) = backward(step, call, &sums) {
            replace(&mut patch, op, new);
        }
    }
    patch
}

fn replace(patch: &mut Patch, op: OpId, new: NewOp) {
    patch.insert.push((Place::After(op), new));
    patch.remove.push(op);
}

/// Of `(query, key, value, bias, log of sums?, dropout, causal, scale)`. The log of sums that it gives is a new tensor.
fn forward(
    step: &Step,
    call: &Call,
    patch: &mut Patch,
    sums: &mut FxHashMap<TensorId, TensorId>,
) -> Option<NewOp> {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let (query, key) = (tensor(call, 0)?, tensor(call, 1)?);
    if tensor(call, 3).is_some() || !fits(step, query) {
        return None;
    }
    let (old, result) = (call.outputs.get(1)?.tensors().first().copied()?, call.outputs.first()?.clone());
    let shape = &step.tensors[query].value.shape[..3];
    let new = patch.tensor(step, Tensor::contiguous(shape, Dtype::F32));
    sums.insert(old, new);
    let seeds = call.outputs.get(2..4).unwrap_or_default();
    let outputs = [&[result, Arg::Tensor(new)], &[const { Arg::None }; 4][..], seeds].concat();
    let flags = [arg(4), arg(5), arg(6), Arg::Bool(false), arg(7)];
    let inner =
        [vec![arg(0), arg(1), arg(2)], vec![Arg::None; 3], lengths(step, [query, key]), flags.to_vec()];
    let outer = [vec![arg(0), arg(1), arg(2), Arg::None], flags.to_vec()];
    let inner = op("aten::_cudnn_attention_forward", inner.concat(), outputs.clone());
    Some(op("aten::_scaled_dot_product_cudnn_attention", outer.concat(), outputs).with(vec![inner]))
}

/// Of `(gradient, query, key, value, bias, result, log of sums, seed, offset, dropout, mask, causal, scale)`.
fn backward(step: &Step, call: &Call, sums: &FxHashMap<TensorId, TensorId>) -> Option<NewOp> {
    let arg = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let (query, key) = (tensor(call, 1)?, tensor(call, 2)?);
    let sums = *sums.get(&tensor(call, 6)?)?;
    let inputs = [
        vec![arg(0), arg(1), arg(2), arg(3), arg(5), Arg::Tensor(sums), arg(7), arg(8)],
        vec![Arg::None; 3],
        lengths(step, [query, key]),
        vec![arg(9), arg(11), arg(12)],
    ]
    .concat();
    let outputs: Vec<_> = call.outputs.iter().take(3).cloned().collect();
    let inner = op("aten::_cudnn_attention_backward", inputs.clone(), outputs.clone());
    Some(op("aten::_scaled_dot_product_cudnn_attention_backward", inputs, outputs).with(vec![inner]))
}

fn op(name: &str, inputs: Vec<Arg<TensorId>>, outputs: Vec<Arg<TensorId>>) -> NewOp {
    NewOp::new(name, Call { inputs, outputs, ..Call::default() })
}

fn tensor(call: &Call, at: usize) -> Option<TensorId> {
    call.inputs.get(at)?.tensors().first().copied()
}

/// The lengths of queries and keys, `[batch, heads, length, dim]`.
fn lengths(step: &Step, tensors: [TensorId; 2]) -> Vec<Arg<TensorId>> {
    tensors.iter().map(|&tensor| Arg::Int(step.tensors[tensor].value.size(2))).collect()
}

fn fits(step: &Step, query: TensorId) -> bool {
    let query = &step.tensors[query].value;
    let dim = query.size(-1);
    matches!(query.dtype, Dtype::Bf16 | Dtype::F16)
        && query.shape.len() == 4
        && dim <= WIDEST
        && dim % ALIGNED == 0
}
