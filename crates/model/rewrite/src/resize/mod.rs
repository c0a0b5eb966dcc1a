//! Another batch size: every dimension that grows with the batch is found through all ops.

mod batch_inputs;
pub(crate) mod batch_propagation;
mod children;
mod dimension_sizes;
pub(crate) mod dims;
mod links;
mod pieces;
mod size_formula;
mod sizes;
mod solve;
mod unlinked_tensors;

use steptime_aten::OpSet;
use steptime_step::{Patch, StepIr, TensorId};

pub(crate) use self::batch_inputs::Seeds;
use self::batch_propagation::BatchPropagation;
use self::dimension_sizes::Forms;
pub use self::dims::BatchDims;
use self::solve::solve;
use crate::error::Error;

/// The patches that change a batch of one size to another, as found to propagate.
pub(crate) fn resize(
    step: &StepIr,
    ops: &OpSet,
    rule: &'static str,
    found: &BatchPropagation,
    [from, to]: [u64; 2],
) -> Result<Vec<Patch>, Error> {
    let BatchPropagation { seeds, forms, passes } = found;
    if !to.is_multiple_of(*passes) {
        return Err(Error::Passes { batch: to, passes: *passes });
    }
    let (from, to) = (from / passes, to / passes);
    let mut patches = scaled(step, ops, rule, forms, to)?;
    let Some(patch) = patches.first_mut() else { return Ok(patches) };
    let dims: usize = patch.reshape.len();
    patch.why = format!(
        "batch {from} to {to}: {} of {} tensors grow with it, from {}",
        dims,
        step.tensors.len(),
        batch_inputs::shapes(step, &seeds.dims)
    );
    patch.doubts = doubts(step, seeds, forms, from);
    Ok(patches)
}

/// Doubts about the batch: dimensions inferred from sizes alone.
fn doubts(step: &StepIr, seeds: &Seeds, forms: &Forms, from: u64) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some(&(tensor, at)) = seeds.ambiguous.first() {
        let shape = &step.tensors[tensor].value.shape;
        doubts.push(format!(
            "several dimensions of the input {:?} have size {from}: dimension {at} is taken as the batch; --batch-dim selects another",
            shape.as_slice()
        ));
    }
    if !forms.guessed.is_empty() {
        let guessed: Vec<(TensorId, usize)> = forms.guessed.iter().map(|dim| (dim.tensor, dim.at)).collect();
        doubts.push(format!(
            "no op shows whether {} of the inputs ({}) grow with the batch: their size suggests it",
            guessed.len(),
            batch_inputs::shapes(step, &guessed)
        ));
    }
    if !forms.doubted.is_empty() {
        let kept: Vec<(TensorId, usize)> = forms.doubted.iter().map(|&tensor| (tensor, usize::MAX)).collect();
        doubts.push(format!(
            "{} parameters would grow with the batch ({}): their sizes are kept",
            kept.len(),
            batch_inputs::shapes(step, &kept)
        ));
    }
    doubts
}

/// Inputs of a step that depend on a batch of this number of samples.
pub(crate) fn find(step: &StepIr, ops: &OpSet, batch: u64) -> Seeds {
    batch_inputs::find(step, ops, batch, &BatchDims::Inferred)
}

/// The patches that scale some dimensions, and all that depend on them, from one size to another.
pub(crate) fn scale(
    step: &StepIr,
    ops: &OpSet,
    rule: &'static str,
    seeds: &Seeds,
    sizes: [u64; 2],
) -> Result<Vec<Patch>, Error> {
    scaled(step, ops, rule, &solve(step, ops, seeds, sizes[0]), sizes[1])
}

fn scaled(
    step: &StepIr,
    ops: &OpSet,
    rule: &'static str,
    forms: &Forms,
    to: u64,
) -> Result<Vec<Patch>, Error> {
    let patch = sizes::patch(step, forms, ops, rule, to)?;
    let mut children = children::patch(step, &patch, ops, rule);
    if children.is_empty() {
        return Ok(vec![patch]);
    }
    let (fewer, more) = (children.remove.len(), children.insert.len());
    children.why = format!("at the new size, ops call {fewer} ops less and {more} more");
    Ok(vec![patch, children])
}
