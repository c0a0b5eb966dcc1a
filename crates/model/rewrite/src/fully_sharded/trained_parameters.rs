//! The parameters of a step that an optimizer updates.

use rustc_hash::FxHashSet;
use steptime_graph::execution::StorageId;
use steptime_step::{StepIr, TensorId};

use super::units;
use crate::blocks::BlockAssignment;
use crate::data_parallel::Gradient;
use crate::error::Error;
use crate::passes::Passes;

/// A parameter with its gradient.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainedParameter {
    pub parameter: TensorId,
    pub gradient: Gradient,
}

impl TrainedParameter {
    /// The parameter and its gradient, both the incoming and the stored one.
    pub fn tensors(&self, step: &StepIr) -> FxHashSet<TensorId> {
        let calls =
            step.subtree(self.gradient.function).into_iter().filter_map(|op| step.ops[op].call.as_deref());
        let given = calls.flat_map(|call| call.takes().chain(call.gives()).collect::<Vec<_>>());
        given.chain([self.parameter]).collect()
    }

    /// Memory of the parameter and of its gradient.
    pub fn memory(&self, step: &StepIr) -> FxHashSet<StorageId> {
        let calls =
            step.subtree(self.gradient.function).into_iter().filter_map(|op| step.ops[op].call.as_deref());
        let tensors = calls.flat_map(|call| call.takes().chain(call.gives()).collect::<Vec<_>>());
        tensors.chain([self.parameter]).filter_map(|id| step.tensors[id].storage).collect()
    }
}

/// Parameters with gradients, in the order of their first use in the forward pass.
///
/// # Errors
/// Where there is none.
pub(crate) fn trained(step: &StepIr, gradients: &[Gradient]) -> Result<Vec<TrainedParameter>, Error> {
    let whole = units::find(step, &Passes::find(step), &BlockAssignment::default(), gradients).pop();
    let whole = whole.ok_or_else(none)?;
    let of =
        |&(at, gradient): &(usize, Gradient)| TrainedParameter { parameter: whole.parameters[at], gradient };
    let all: Vec<TrainedParameter> = whole.gradients.iter().map(of).collect();
    if all.is_empty() { Err(none()) } else { Ok(all) }
}

/// Error of a step without known trained parameters.
pub(super) fn none() -> Error {
    Error::NothingToDo {
        reason: "no parameter is used by the model and updated by an optimizer: record an execution trace of a training step, \
                 optimizer.step() included"
            .to_owned(),
    }
}
