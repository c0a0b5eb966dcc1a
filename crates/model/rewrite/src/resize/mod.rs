//! Another batch size: every dimension that grows with the batch is found through all ops.

mod adopt;
mod children;
pub(crate) mod dims;
pub(crate) mod followed;
mod form;
mod forms;
mod links;
mod pieces;
mod seeds;
mod sizes;
mod solve;

use steptime_aten::OpSet;
use steptime_step::{Patch, Step, TensorId};

pub use self::dims::BatchDims;
use self::followed::BatchPropagation;
use self::forms::Forms;
pub(crate) use self::seeds::Seeds;
use self::solve::solve;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::stage::Stage;

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
        let follow = || BatchPropagation::build(step, facts.ops, from, &self.dims);
        let known = facts.known(step).and_then(|known| known.batch((facts.ops, from, &self.dims), follow));
        let own = if known.is_none() { Some(follow()) } else { None };
        let Some(BatchPropagation { seeds, forms, passes }) =
            known.or(own.as_ref()).filter(|found| !found.seeds.dims.is_empty())
        else {
            return Err(Error::NoBatchDim { batch: from });
        };
        if !self.to.is_multiple_of(*passes) {
            return Err(Error::Passes { batch: self.to, passes: *passes });
        }
        let (from, to) = (from / passes, self.to / passes);
        let mut patches = scaled(step, facts.ops, self.name(), forms, to)?;
        let Some(patch) = patches.first_mut() else { return Ok(patches) };
        let dims: usize = patch.reshape.len();
        patch.why = format!(
            "batch {from} to {to}: {} of {} tensors grow with it, from {}",
            dims,
            step.tensors.len(),
            seeds::shapes(step, &seeds.dims)
        );
        patch.doubts = doubts(step, seeds, forms, from);
        Ok(patches)
    }
}

/// Doubts about the batch: dimensions inferred from sizes alone.
fn doubts(step: &Step, seeds: &Seeds, forms: &Forms, from: u64) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some(&(tensor, at)) = seeds.ambiguous.first() {
        let shape = &step.tensors[tensor].value.shape;
        doubts.push(format!(
            "several dimensions of the input {:?} are of {from}: number {at} is taken for the batch; --batch-dim takes another",
            shape.as_slice()
        ));
    }
    if !forms.guessed.is_empty() {
        let guessed: Vec<(TensorId, usize)> = forms.guessed.iter().map(|dim| (dim.tensor, dim.at)).collect();
        doubts.push(format!(
            "no op says whether {} of the inputs ({}) grow with the batch: their size does",
            guessed.len(),
            seeds::shapes(step, &guessed)
        ));
    }
    if !forms.doubted.is_empty() {
        let kept: Vec<(TensorId, usize)> = forms.doubted.iter().map(|&tensor| (tensor, usize::MAX)).collect();
        doubts.push(format!(
            "{} parameters would grow with the batch ({}) and are kept as they are",
            kept.len(),
            seeds::shapes(step, &kept)
        ));
    }
    doubts
}

/// Inputs of a step that depend on a batch of this number of samples.
pub(crate) fn find(step: &Step, ops: &OpSet, batch: u64) -> Seeds {
    seeds::find(step, ops, batch, &BatchDims::Inferred)
}

/// The patches that scale some dimensions, and all that depend on them, from one size to another.
pub(crate) fn scale(
    step: &Step,
    ops: &OpSet,
    rule: &'static str,
    seeds: &Seeds,
    sizes: [u64; 2],
) -> Result<Vec<Patch>, Error> {
    scaled(step, ops, rule, &solve(step, ops, seeds, sizes[0]), sizes[1])
}

fn scaled(step: &Step, ops: &OpSet, rule: &'static str, forms: &Forms, to: u64) -> Result<Vec<Patch>, Error> {
    let patch = sizes::patch(step, forms, ops, rule, to)?;
    let mut children = children::patch(step, &patch, ops, rule);
    if children.is_empty() {
        return Ok(vec![patch]);
    }
    let (fewer, more) = (children.remove.len(), children.insert.len());
    children.why = format!("of its size, ops call {fewer} ops less and {more} more");
    Ok(vec![patch, children])
}
