//! Where a batch comes into a step, and where it goes.

use steptime_aten::OpSet;
use steptime_step::Step;

use super::labels::Labels;
use super::seeds::Seeds;

/// Where a batch comes into a step, and which dimensions grow with it.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(super) seeds: Seeds,
    pub(super) labels: Labels,
}

impl Followed {
    pub(super) fn of(step: &Step, ops: &OpSet, seeds: Seeds, from: u64) -> Followed {
        // Where nothing grows, nothing is followed.
        let seeded = !seeds.dims.is_empty();
        let labels = if seeded { Labels::spread(step, ops, &seeds, from) } else { Labels::default() };
        Followed { seeds, labels }
    }
}
