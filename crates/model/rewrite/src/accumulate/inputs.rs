//! Copies of tensors that are the same for every batch: a graph whose nodes are trained, a table of positions.

use rustc_hash::FxHashSet;
use steptime_aten::Device;
use steptime_step::{OpId, StepIr, TensorId};

use crate::passes::takes;
use crate::resize;
use crate::rule::Facts;

/// Ops of the script that copy a tensor without a batch dimension to the device. Empty where the batch size is unknown, or where no tensor has a
/// batch dimension.
pub(super) fn fixed(step: &StepIr, script: &[OpId], facts: &Facts<'_>) -> Vec<OpId> {
    let Some(batch) = facts.batch.filter(|&batch| batch > 0) else { return Vec::new() };
    let seeds: FxHashSet<TensorId> =
        resize::find(step, facts.ops, batch).dims.into_iter().map(|(tensor, _)| tensor).collect();
    let is_fixed =
        |op: &OpId| is_copy(step, *op) && !takes(step, *op).iter().any(|taken| seeds.contains(taken));
    if seeds.is_empty() { Vec::new() } else { script.iter().copied().filter(is_fixed).collect() }
}

/// Whether an op takes only host tensors, and returns a device tensor.
fn is_copy(step: &StepIr, op: OpId) -> bool {
    let Some(call) = step.ops[op].call.as_deref() else { return false };
    let on_device = |tensor: TensorId| step.tensors[tensor].value.device == Device::Cuda;
    call.takes().next().is_some() && !call.takes().any(on_device) && call.gives().any(on_device)
}
