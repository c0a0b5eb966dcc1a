//! Where a batch comes into a step, and where it goes.

use steptime_aten::OpSet;
use steptime_step::Step;

use super::dims::BatchDims;
use super::forms::Forms;
use super::seeds::{self, Seeds};
use super::solve::solve;

/// Where a batch comes into a step, and which dimensions grow with it.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(super) seeds: Seeds,
    pub(super) forms: Forms,
    /// Passes whose gradients are added up: each has its share of the batch.
    pub(super) passes: u64,
}

impl Followed {
    /// Follows a batch. Where an input has several dimensions of its size, it is the first, unless ops that know which of theirs
    /// is of samples say otherwise.
    pub(super) fn of(step: &Step, ops: &OpSet, batch: u64, dims: &BatchDims) -> Followed {
        let mut seeds = seeds::find(step, ops, batch, dims);
        let passes = if seeds.dims.is_empty() { seeds.passes(step, batch, dims) } else { 1 };
        let from = batch / passes;
        if passes > 1 {
            seeds = seeds::find(step, ops, from, dims);
        }
        // Where nothing grows, nothing is followed.
        if seeds.dims.is_empty() {
            return Followed { seeds, forms: Forms::default(), passes };
        }
        let forms = solve(step, ops, &seeds, from);
        if forms.astray > 0 && !seeds.ambiguous.is_empty() {
            let others = seeds.others(step, from);
            let found = solve(step, ops, &others, from);
            if found.astray < forms.astray {
                return Followed { seeds: others, forms: found, passes };
            }
        }
        Followed { seeds, forms, passes }
    }
}
