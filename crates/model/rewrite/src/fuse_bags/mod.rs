//! Fusion of several embedding bags into one bag on one concatenated table.

mod bags;
mod chain;
mod corresponding_ops;
mod fuse;
mod merged_arguments;
mod merged_sizes;
mod split_results;

use steptime_step::{Patch, StepIr};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;
use crate::selection::Among;

/// Concatenates the tables of all embedding bags of the same width, mode and type, and looks up all of them at once.
///
/// The first bag's ops remain: all from the copies of its indices up to the update of its table. Their sizes become sums over all bags;
/// `view` and `unbind`
/// split the result.
#[derive(Debug, Clone, Copy, Default)]
pub struct FuseEmbeddingBags;

impl Rule for FuseEmbeddingBags {
    fn name(&self) -> &'static str {
        "fuse-embedding-bags"
    }

    fn stage(&self) -> Stage {
        Stage::Bags
    }

    fn effort(&self) -> &'static str {
        "medium: one table with an offset per feature, one copy of all indices"
    }

    fn risk(&self) -> &'static str {
        "tables must agree in width, mode and type"
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        self.among(step, facts, &Among::ALL)
    }
}

impl FuseEmbeddingBags {
    /// Fuses chosen bags only.
    pub(crate) fn among(&self, step: &StepIr, facts: &Facts<'_>, among: &Among) -> Result<Vec<Patch>, Error> {
        let mut all = bags::find(step);
        all.retain(|bag| among.has(step, bag.op));
        let groups = bags::groups(all);
        let found = groups.iter().map(Vec::len).sum();
        let mut now = step.clone();
        let mut patches = Vec::new();
        for group in groups.iter().filter(|group| group.len() > 1) {
            let patch = fuse::patch(&now, group, facts.ops, self.name())?;
            now.apply(&patch, facts.ops)?;
            patches.push(patch);
        }
        if patches.is_empty() {
            return Err(Error::NoBags { found });
        }
        Ok(patches)
    }
}
