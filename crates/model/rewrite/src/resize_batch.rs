//! The rule of another batch size.

use steptime_step::{Patch, StepIr};

use crate::error::Error;
use crate::resize::batch_propagation::BatchPropagation;
use crate::resize::dims::BatchDims;
use crate::resize::resize;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Changes the batch size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResizeBatch {
    /// Samples in the batch.
    pub to: u64,
    /// Recorded samples, where the recording does not have them.
    pub from: Option<u64>,
    /// Dimensions that grow.
    pub dims: BatchDims,
}

impl ResizeBatch {
    /// A batch of this number of samples; the dimensions that grow with it are inferred.
    #[must_use]
    pub fn to(samples: u64) -> ResizeBatch {
        ResizeBatch { to: samples, from: None, dims: BatchDims::Inferred }
    }
}

impl Rule for ResizeBatch {
    fn name(&self) -> &'static str {
        "batch"
    }

    fn stage(&self) -> Stage {
        Stage::Batch
    }

    fn effort(&self) -> &'static str {
        "one number"
    }

    fn risk(&self) -> &'static str {
        "adapt the learning rate"
    }

    fn samples(&self, _: Option<u64>) -> Option<u64> {
        Some(self.to)
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let from = self.from.or(facts.batch).ok_or(Error::NoBatch)?;
        if self.to == 0 || from == 0 {
            return Err(Error::Batch(self.to));
        }
        if self.to == from {
            return Ok(Vec::new());
        }
        let follow = || BatchPropagation::build(step, facts.ops, from, &self.dims);
        let known = facts.known(step).and_then(|known| known.batch((facts.ops, from, &self.dims), follow));
        let own = if known.is_none() { Some(follow()) } else { None };
        match known.or(own.as_ref()).filter(|found| found.grows()) {
            Some(found) => resize(step, facts.ops, self.name(), found, [from, self.to]),
            None => Err(Error::NoBatchDim { batch: from }),
        }
    }
}
