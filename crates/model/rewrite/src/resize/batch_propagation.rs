//! Propagation of a batch through a step.

use steptime_aten::OpSet;
use steptime_step::{StepIr, TensorId};

use super::batch_inputs::{self, Seeds};
use super::dimension_sizes::Forms;
use super::dims::BatchDims;
use super::solve::solve;

/// Inputs of a step that depend on the batch, and the dimensions that grow with it.
#[derive(Debug)]
pub(crate) struct BatchPropagation {
    pub(super) seeds: Seeds,
    pub(super) forms: Forms,
    /// Passes whose gradients are accumulated: the batch is divided among them.
    pub(super) passes: u64,
}

impl BatchPropagation {
    /// Whether any dimension of an input grows with the batch.
    pub(crate) fn grows(&self) -> bool {
        !self.seeds.dims.is_empty()
    }

    /// Whether a dimension of a tensor grows with the batch.
    pub(crate) fn grows_in(&self, tensor: TensorId) -> bool {
        self.grows() && self.forms.grows(tensor)
    }

    /// Propagates a batch. Where an input has several dimensions of its size, the first is taken, unless ops with a known sample dimension
    /// contradict.
    pub(crate) fn build(step: &StepIr, ops: &OpSet, batch: u64, dims: &BatchDims) -> BatchPropagation {
        let mut seeds = batch_inputs::find(step, ops, batch, dims);
        let passes = if seeds.dims.is_empty() { seeds.passes(step, batch, dims) } else { 1 };
        let from = batch / passes;
        if passes > 1 {
            seeds = batch_inputs::find(step, ops, from, dims);
        }
        // Without growing inputs there is nothing to propagate.
        if seeds.dims.is_empty() {
            return BatchPropagation { seeds, forms: Forms::default(), passes };
        }
        let forms = solve(step, ops, &seeds, from);
        if forms.astray > 0 && !seeds.ambiguous.is_empty() {
            let others = seeds.others(step, from);
            let found = solve(step, ops, &others, from);
            if found.astray < forms.astray {
                return BatchPropagation { seeds: others, forms: found, passes };
            }
        }
        BatchPropagation { seeds, forms, passes }
    }
}
