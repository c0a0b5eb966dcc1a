//! Dot interaction as one op.

use steptime_ops::interaction::{Features, FeaturesMut, Interaction};

use crate::binder::{Binder, Built, Refusal};
use crate::kernel::Kernel;
use crate::row::{Row, runs};

pub(super) const ROWS: &[Row] =
    &[runs("steptime::interaction", forward), runs("steptime::interaction_backward", backward)];

/// `interaction(vectors, plan)`: the first vector of each sample, and the products of all pairs.
fn forward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let vectors = b.floats(0)?;
    let to = b.writes(0)?;
    let own = interaction(vectors.shape())?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let features = Features::Stacked(vectors.floats(&run.memory)?);
        Ok(own.forward(run.cpu, &features, to.floats_mut(&mut run.memory)?)?)
    })))
}

/// `interaction_backward(grad, vectors, plan)`.
fn backward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let (grad, vectors) = (b.floats(0)?, b.floats(1)?);
    let to = b.writes(0)?;
    let own = interaction(vectors.shape())?;
    let shape = vectors.shape().to_vec();
    Ok(Built::Kernel(Kernel::new(move |run| {
        let features = Features::Stacked(vectors.floats(&run.memory)?);
        let grad = grad.floats(&run.memory)?;
        let to = FeaturesMut::Stacked(to.floats_mut(&mut run.memory)?.reshape(&shape)?);
        Ok(own.backward(run.cpu, &features, &grad, to)?)
    })))
}

fn interaction(shape: &[usize]) -> Result<Interaction, Refusal> {
    let &[_, features, width] = shape else { return Err("its vectors are not a batch".to_owned()) };
    Interaction::new(features, width, false).map_err(|source| source.to_string())
}
