//! Accumulation of the gradients of several batches before one update.

mod inputs;
mod loss;
mod pass;
mod rounds;
mod sparse_gradients;

use steptime_step::{Patch, StepIr};

use self::pass::Pass;
use self::rounds::Rounds;
use self::sparse_gradients::Rows;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Runs the forward and the backward pass for a number of batches, and then the optimizer once.
#[derive(Debug, Clone, Copy)]
pub struct Accumulate {
    /// Number of batches.
    pub batches: u32,
}

/// Maximum number of batches: each is scheduled op by op.
const MOST: u32 = 1024;

impl Rule for Accumulate {
    fn name(&self) -> &'static str {
        "accumulate"
    }

    fn stage(&self) -> Stage {
        Stage::Accumulation
    }

    fn effort(&self) -> &'static str {
        "small: optimizer.step() and zero_grad() once every N batches, the loss divided by N"
    }

    fn risk(&self) -> &'static str {
        "the update sees a larger batch: learning rate and batch norm may need care"
    }

    fn samples(&self, before: Option<u64>) -> Option<u64> {
        before?.checked_mul(u64::from(self.batches))
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        if !(1..=MOST).contains(&self.batches) {
            return Err(Error::Accumulated { batches: self.batches, most: MOST });
        }
        if self.batches == 1 {
            return Ok(Vec::new());
        }
        let pass = Pass::find(step, facts)?;
        let functions = rounds::functions(step, &pass.ops());
        let rows: Vec<Rows> =
            functions.into_iter().filter_map(|function| Rows::find(step, function)).collect();
        let grown = sparse_gradients::scale_updates(step, rows, self.batches, self.name());
        let mut divided = loss::divided(step, self.name());
        if let Some(patch) = &mut divided {
            patch.why = format!("the loss of each batch is divided by {}", self.batches);
        }
        let mut patches: Vec<Patch> = grown.into_iter().chain(divided).collect();
        let mut now = step.clone();
        for patch in &patches {
            now.apply(patch, facts.ops)?;
        }
        patches.push(self.repeat_pass(&now, facts)?);
        Ok(patches)
    }
}

impl Accumulate {
    /// The patch that repeats the pass of the first batch for each further one.
    fn repeat_pass(self, step: &StepIr, facts: &Facts<'_>) -> Result<Patch, Error> {
        let pass = Pass::find(step, facts)?;
        let mut rounds = Rounds::new(step, self.name());
        // Each copy is inserted right after the first batch: the last inserted one comes first.
        for round in (1..self.batches).rev() {
            rounds.add(&pass, round);
        }
        let (ops, adds) = (rounds.ops, rounds.adds);
        let mut patch = rounds.patch;
        patch.why = format!(
            "{} batches per update: {ops} ops are repeated, {adds} gradients are accumulated",
            self.batches
        );
        Ok(patch)
    }
}
