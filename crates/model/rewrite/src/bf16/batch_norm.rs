//! Batch norm in bfloat16: PyTorch's own kernels, while 32 bits and float16 use cuDNN's.

use steptime_aten::{Arg, Dtype};
use steptime_step::{Call, Patch, StepIr, TensorId};

use super::replaced::{op, replace, tensor};
use crate::new_ops::ints;

const CUDNN: &str = "aten::cudnn_batch_norm";
const CUDNN_BACKWARD: &str = "aten::cudnn_batch_norm_backward";
/// The number of arguments of a gradient that was recorded on a GPU: the last is memory that cuDNN reserves.
const RESERVING: usize = 9;

/// Whether a step has any batch norm that may be replaced.
pub(super) fn is_in(step: &StepIr) -> bool {
    step.running().into_iter().any(|op| [CUDNN, CUDNN_BACKWARD].contains(&&*step.ops[op].name))
}

/// Replaces cuDNN's kernels by PyTorch's, where they would now run in bfloat16. `step` has its 16-bit types already.
pub(super) fn patch(step: &StepIr, patch: &mut Patch) {
    for id in step.running() {
        let Some(call) = step.ops[id].call.as_deref().filter(|call| is_bf16(step, call)) else { continue };
        let first = |call: &Call| call.outputs.iter().take(3).cloned().collect();
        match &*step.ops[id].name {
            CUDNN => {
                let new = op("aten::native_batch_norm", call.inputs.clone(), first(call));
                let inside = ["aten::empty_like", "aten::empty", "aten::empty"];
                let inside = inside.iter().map(|name| op(name, Vec::new(), Vec::new())).collect();
                replace(patch, id, new.with(inside));
            }
            CUDNN_BACKWARD => {
                let new = op("aten::native_batch_norm_backward", gradient(call), first(call));
                replace(patch, id, new);
            }
            _ => {}
        }
    }
}

/// Inputs of the gradient, from `(input, gradient, weight, mean, variance, saved mean, saved deviation, eps, reserve)`, or with `training, eps, mask`
/// at the end.
fn gradient(call: &Call) -> Vec<Arg<TensorId>> {
    let mut inputs = call.inputs.clone();
    if inputs.len() == RESERVING {
        inputs.pop();
        inputs.insert(RESERVING - 2, Arg::Bool(true));
        inputs.push(ints(&[1, 1, 1]));
    }
    if inputs.len() > 1 {
        inputs.swap(0, 1);
    }
    inputs
}

fn is_bf16(step: &StepIr, call: &Call) -> bool {
    tensor(call, 0).is_some_and(|input| step.tensors[input].value.dtype == Dtype::Bf16)
}
