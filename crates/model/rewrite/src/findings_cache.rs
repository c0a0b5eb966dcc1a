//! Findings about a step that is queried many times.

use std::sync::OnceLock;

use steptime_aten::OpSet;
use steptime_step::StepIr;

use crate::resize::batch_propagation::BatchPropagation;
use crate::resize::dims::BatchDims;

/// An unchanged step, and the findings of rules about it.
#[derive(Debug, Clone, Copy)]
pub struct UnchangedStep<'a> {
    /// The step. Findings are used only for this very object.
    pub step: &'a StepIr,
    /// Findings about this step only.
    pub known: &'a FindingsCache,
}

/// Cached findings of rules about one step. Threads may access it at the same time.
#[derive(Debug, Default)]
pub struct FindingsCache {
    batch: OnceLock<(OpSet, u64, BatchDims, BatchPropagation)>,
}

impl FindingsCache {
    /// Propagation of the batch dimension, computed once for the first query; `None` for a query with other arguments.
    pub(crate) fn batch(
        &self,
        (ops, from, dims): (&OpSet, u64, &BatchDims),
        follow: impl FnOnce() -> BatchPropagation,
    ) -> Option<&BatchPropagation> {
        let (set, size, at, followed) =
            self.batch.get_or_init(|| (ops.clone(), from, dims.clone(), follow()));
        (set.is(ops) && *size == from && at == dims).then_some(followed)
    }
}
