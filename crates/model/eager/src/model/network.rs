//! Common parts of all models: inputs on the device, and the loss.

use steptime_aten::Dtype;

use super::file::{Description, Loss};
use super::layers::{Lookups, Tables};
use crate::eager::Eager;
use crate::ops::activation::sigmoid;
use crate::ops::copy::to_device;
use crate::ops::loss;
use crate::role::Role;
use crate::tensor::Tensor;

impl Description {
    /// Samples per step of one rank.
    pub(super) fn share(&self) -> i64 {
        self.batch / i64::from(self.gpus()).max(1)
    }
}

/// A model with allocated parameters.
pub(super) trait Network {
    /// Runs the model on a new batch, and returns the loss.
    fn loss(&self, e: &mut Eager) -> Tensor;
}

/// A tensor of floats, copied to the device.
pub(super) fn floats(e: &mut Eager, name: &str, shape: &[i64]) -> Tensor {
    let there = e.host(shape, Dtype::F32);
    e.name(&there, name, Role::Input);
    to_device(e, &there)
}

/// The inputs of a batch: dense features `[batch, dense]`, if any, lookups, a label per sample.
pub(super) fn batch(e: &mut Eager, of: &Description, tables: &Tables) -> (Option<Tensor>, Lookups, Tensor) {
    e.label("## to_device ##", |e| {
        let dense = (of.dense > 0).then(|| floats(e, "dense", &[of.share(), of.dense]));
        let lookups = tables.inputs(e);
        (dense, lookups, floats(e, "labels", &[of.share(), 1]))
    })
}

/// Output of a model with one output per sample: the logit, or its logistic for a squared loss.
pub(super) fn output(e: &mut Eager, of: &Description, logit: Tensor) -> Tensor {
    match of.loss() {
        Loss::Mse => sigmoid(e, &logit),
        Loss::BceWithLogits => logit,
    }
}

/// The loss of outputs `[batch, 1]`.
pub(super) fn loss_of(e: &mut Eager, of: &Description, output: &Tensor, labels: &Tensor) -> Tensor {
    e.label("## loss ##", |e| match of.loss() {
        Loss::Mse => loss::mse(e, output, labels),
        Loss::BceWithLogits => loss::bce_with_logits(e, output, labels),
    })
}
