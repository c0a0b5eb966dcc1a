//! Another batch: every dimension that grows with it is followed through all ops.

mod born;
mod children;
pub(crate) mod dims;
pub(crate) mod followed;
mod labels;
mod links;
mod pieces;
mod seeds;
mod sizes;

use steptime_aten::OpSet;
use steptime_step::{Patch, Step};

pub use self::dims::BatchDims;
use self::followed::Followed;
use self::labels::Labels;
pub(crate) use self::seeds::Seeds;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::stage::Stage;

/// A batch of another size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResizeBatch {
    /// Samples in the batch.
    pub to: u64,
    /// Samples recorded, where the recording does not say it.
    pub from: Option<u64>,
    /// Which dimensions grow.
    pub dims: BatchDims,
}

impl ResizeBatch {
    /// A batch of so many samples; which dimensions grow with it is inferred.
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
        "the learning rate must follow"
    }

    fn samples(&self, _: Option<u64>) -> Option<u64> {
        Some(self.to)
    }

    fn patches(&self, step: &Step, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let from = self.from.or(facts.batch).ok_or(Error::NoBatch)?;
        if self.to == 0 || from == 0 {
            return Err(Error::Batch(self.to));
        }
        if self.to == from {
            return Ok(Vec::new());
        }
        let follow = || Followed::of(step, facts.ops, seeds::find(step, from, &self.dims), from);
        let known = facts.known(step).and_then(|known| known.batch((facts.ops, from, &self.dims), follow));
        let own = if known.is_none() { Some(follow()) } else { None };
        let Some(Followed { seeds, labels }) =
            known.or(own.as_ref()).filter(|found| !found.seeds.dims.is_empty())
        else {
            return Err(Error::NoBatchDim { batch: from });
        };
        let mut patches = scaled(step, facts.ops, self.name(), labels, [from, self.to])?;
        let Some(patch) = patches.first_mut() else { return Ok(patches) };
        let dims: usize = patch.reshape.len();
        patch.why = format!(
            "batch {from} to {}: {} of {} tensors grow with it, from {}",
            self.to,
            dims,
            step.tensors.len(),
            seeds.words(step)
        );
        if !labels.doubted.is_empty() {
            let shapes: Vec<String> = labels
                .doubted
                .iter()
                .take(3)
                .map(|&tensor| format!("{:?}", step.tensors[tensor].value.shape))
                .collect();
            patch.why += &format!(
                "; {} parameters would have grown, too ({}) and were kept",
                labels.doubted.len(),
                shapes.join(", ")
            );
        }
        Ok(patches)
    }
}

/// Where a batch of so many samples comes into a step.
pub(crate) fn find(step: &Step, batch: u64) -> Seeds {
    seeds::find(step, batch, &BatchDims::Inferred)
}

/// The patches that scale some dimensions, and all that follow from them, from one size to another.
pub(crate) fn scale(
    step: &Step,
    ops: &OpSet,
    rule: &'static str,
    seeds: &Seeds,
    sizes: [u64; 2],
) -> Result<Vec<Patch>, Error> {
    scaled(step, ops, rule, &Labels::spread(step, ops, seeds, sizes[0]), sizes)
}

fn scaled(
    step: &Step,
    ops: &OpSet,
    rule: &'static str,
    labels: &Labels,
    sizes: [u64; 2],
) -> Result<Vec<Patch>, Error> {
    let patch = sizes::patch(step, labels, ops, rule, sizes)?;
    let mut children = children::patch(step, &patch, ops, rule);
    if children.is_empty() {
        return Ok(vec![patch]);
    }
    let (fewer, more) = (children.remove.len(), children.insert.len());
    children.why = format!("of its size, ops call {fewer} ops less and {more} more");
    Ok(vec![patch, children])
}
