//! Gradients of several batches added up before one update.

mod pass;
mod rounds;

use steptime_step::{Patch, Step};

use self::pass::Pass;
use self::rounds::Rounds;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::stage::Stage;

/// Runs the forward and the backward pass for so many batches, and then the optimizer once.
#[derive(Debug, Clone, Copy)]
pub struct Accumulate {
    /// How many batches.
    pub batches: u32,
}

/// More batches than this are refused: each is scheduled op by op.
const MOST: u32 = 1024;

impl Rule for Accumulate {
    fn name(&self) -> &'static str {
        "accumulate"
    }

    fn stage(&self) -> Stage {
        Stage::Accumulation
    }

    fn effort(&self) -> &'static str {
        "small: optimizer.step() and zero_grad() every so many batches, the loss divided by their number"
    }

    fn risk(&self) -> &'static str {
        "the update sees a larger batch: learning rate and batch norm may need care"
    }

    fn samples(&self, before: Option<u64>) -> Option<u64> {
        before?.checked_mul(u64::from(self.batches))
    }

    fn patches(&self, step: &Step, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        if !(1..=MOST).contains(&self.batches) {
            return Err(Error::Accumulated { batches: self.batches, most: MOST });
        }
        let pass = Pass::of(step)?;
        let mut rounds = Rounds::new(step, self.name());
        // Each is put right after the first: the last comes to stand last.
        for round in (1..self.batches).rev() {
            rounds.add(&pass, round);
        }
        let (ops, adds) = (rounds.ops, rounds.adds);
        let mut patch = rounds.patch;
        patch.why = format!(
            "{} batches, one update: {ops} ops run again, {adds} gradients are added to those before",
            self.batches
        );
        Ok(vec![patch])
    }
}
