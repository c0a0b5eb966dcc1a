//! Sizes of a model: rows, columns and lookups of tables, widths of layers.

mod parts;
mod path;

use steptime_step::{Patch, StepIr};

use self::parts::Target;
pub use self::parts::sized;
pub use self::path::SizePath;
use crate::error::Error;
use crate::resize::{Seeds, scale};
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Changes a size of a table or a layer, and all sizes that depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetSize {
    /// Path of the size.
    pub path: SizePath,
    /// New size.
    pub to: u64,
}

impl Rule for SetSize {
    fn name(&self) -> &'static str {
        "set"
    }

    fn stage(&self) -> Stage {
        Stage::Size
    }

    fn effort(&self) -> &'static str {
        "one number of the model"
    }

    fn risk(&self) -> &'static str {
        "the model changes: its accuracy is not predicted"
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        if self.to == 0 {
            return Err(Error::SizeOfNone { path: self.path.to_string() });
        }
        let targets = parts::find(step, &self.path)?;
        let (mut now, mut patches) = (step.clone(), Vec::new());
        // Targets of one size are changed together: a tensor that joins them grows as a whole.
        let mut sizes: Vec<u64> = targets.iter().map(|target| target.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for from in sizes.into_iter().filter(|&from| from != self.to) {
            let alike: Vec<&Target> = targets.iter().filter(|target| target.size == from).collect();
            for patch in self.resized(&now, &alike, from, facts)? {
                now = now.patched(&patch)?;
                patches.push(patch);
            }
        }
        Ok(patches)
    }
}

impl SetSize {
    fn resized(
        &self,
        step: &StepIr,
        targets: &[&Target],
        from: u64,
        facts: &Facts<'_>,
    ) -> Result<Vec<Patch>, Error> {
        let dims = targets.iter().flat_map(|target| target.dims.clone()).collect();
        let seeds = Seeds::new(dims);
        let mut patches = scale(step, facts.ops, self.name(), &seeds, [from, self.to])?;
        if let Some(patch) = patches.first_mut() {
            let names: Vec<&str> = targets.iter().take(4).map(|target| &*target.name).collect();
            let more = targets.len().saturating_sub(names.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            patch.why = format!(
                "{} of {}{more}: {from} to {}, {} tensors change with it",
                self.path.size(),
                names.join(", "),
                self.to,
                patch.reshape.len()
            );
        }
        Ok(patches)
    }
}
