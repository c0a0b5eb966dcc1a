//! Copies of tensors that are the same for every batch: a graph whose nodes are trained, a table of positions.

use rustc_hash::FxHashSet;
use steptime_aten::Device;
use steptime_step::{OpId, StepIr, TensorId, Uses};

use crate::passes::takes;
use crate::resize::batch_propagation::BatchPropagation;
use crate::resize::{self, BatchDims};
use crate::rule::Facts;

/// Ops of the script that copy a tensor without a batch dimension to the device. Empty where the batch size is unknown, or where no tensor has a
/// batch dimension.
pub(super) fn fixed(step: &StepIr, script: &[OpId], facts: &Facts<'_>) -> Vec<OpId> {
    let Some(batch) = facts.batch.filter(|&batch| batch > 0) else { return Vec::new() };
    let seeds: FxHashSet<TensorId> =
        resize::find(step, facts.ops, batch).dims.into_iter().map(|(tensor, _)| tensor).collect();
    let takes_any = |op: &OpId, grows: &dyn Fn(TensorId) -> bool| takes(step, *op).into_iter().any(grows);
    let is_candidate = |op: &OpId| is_copy(step, *op) && !takes_any(op, &|tensor| seeds.contains(&tensor));
    let mut found: Vec<OpId> = script.iter().copied().filter(is_candidate).collect();
    if seeds.is_empty() {
        return Vec::new();
    }
    // Sizes that follow from the batch: several lookups of each sample. Other sizes, such as the edges of a graph, may be multiples by chance.
    if !found.is_empty() {
        let follow = || BatchPropagation::build(step, facts.ops, batch, &BatchDims::Inferred);
        let known =
            facts.known(step).and_then(|known| known.batch((facts.ops, batch, &BatchDims::Inferred), follow));
        let own = if known.is_none() { Some(follow()) } else { None };
        if let Some(sizes) = known.or(own.as_ref()) {
            let uses = Uses::find(step);
            let grows = |op: &OpId| takes_any(op, &|tensor| sizes.grows_in(tensor));
            found.retain(|&op| !(grows(&op) && is_looked_up(step, &uses, op)));
        }
    }
    found
}

/// Whether embeddings take results of an op.
fn is_looked_up(step: &StepIr, uses: &Uses, op: OpId) -> bool {
    let results = step.ops[op].call.as_deref().into_iter().flat_map(|call| call.gives());
    let mut readers = results.flat_map(|tensor| uses.consumers(tensor).iter().copied());
    readers.any(|reader| step.ops[reader].name.contains("embedding"))
}

/// Whether an op takes only host tensors, and returns a device tensor.
fn is_copy(step: &StepIr, op: OpId) -> bool {
    let Some(call) = step.ops[op].call.as_deref() else { return false };
    let on_device = |tensor: TensorId| step.tensors[tensor].value.device == Device::Cuda;
    call.takes().next().is_some() && !call.takes().any(on_device) && call.gives().any(on_device)
}
