//! What rules found of a step that is asked about again and again.

use std::sync::OnceLock;

use steptime_aten::OpSet;
use steptime_step::Step;

use crate::resize::dims::BatchDims;
use crate::resize::followed::Followed;

/// A step before any change, and what rules found of it.
#[derive(Debug, Clone, Copy)]
pub struct Unchanged<'a> {
    /// The step. What a rule is given is known where it is this very one.
    pub step: &'a Step,
    /// What was found of this step, and of no other.
    pub known: &'a Known,
}

/// What rules found of one step, for the next time. Threads may ask at the same time.
#[derive(Debug, Default)]
pub struct Known {
    batch: OnceLock<(OpSet, u64, BatchDims, Followed)>,
}

impl Known {
    /// Where a batch is followed to, found once for the first that is asked for; `None` for another.
    pub(crate) fn batch(
        &self,
        (ops, from, dims): (&OpSet, u64, &BatchDims),
        follow: impl FnOnce() -> Followed,
    ) -> Option<&Followed> {
        let (set, size, at, followed) =
            self.batch.get_or_init(|| (ops.clone(), from, dims.clone(), follow()));
        (set.is(ops) && *size == from && at == dims).then_some(followed)
    }
}
