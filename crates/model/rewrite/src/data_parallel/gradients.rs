//! The gradients of a step, in the order in which they arrive.

use rustc_hash::FxHashSet;
use steptime_aten::Dtype;
use steptime_graph::names::{ACCUMULATE_GRAD, EventName};
use steptime_step::{OpId, StepIr, TensorId};

use crate::error::Error;
use crate::passes::Passes;

/// The op that adds a gradient to that of earlier batches.
const ADD: &str = "aten::add_";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Gradient {
    /// The function that accumulates it into that of its parameter.
    pub function: OpId,
    pub tensor: TensorId,
    pub elements: i64,
    pub dtype: Dtype,
}

/// Gradients of parameters, except those of the functions `apart`. Where a rule accumulates several batches, those of the last batch, as under
/// `no_sync`.
///
/// # Errors
/// Where there is no gradient, a parameter has several, or one is sparse.
pub(crate) fn find(step: &StepIr, apart: &FxHashSet<OpId>) -> Result<Vec<Gradient>, Error> {
    let passes = Passes::find(step);
    // Of accumulated batches, the last one averages the sum of all (`no_sync` before it).
    let last = passes.last_round(step);
    if last == 0 && passes.are_several(step) {
        return Err(Error::SeveralPasses);
    }
    if step
        .ops
        .iter()
        .any(|op| op.exchange.is_some_and(|of| of.kind == steptime_graph::CollectiveKind::AllReduce))
    {
        return Err(Error::NothingToDo { reason: "gradients are averaged already".to_owned() });
    }
    let name = EventName::engine(ACCUMULATE_GRAD);
    let mut found = Vec::new();
    let comes = |op: OpId| step.ops[op].name == name && step.ops[op].round == last && !apart.contains(&op);
    for &function in passes.backward.iter().filter(|&&op| comes(op)) {
        let inside = step.subtree(function);
        let taken = |op: &OpId| step.ops[*op].call.as_deref()?.takes().next();
        // The accumulated sum, else the incoming gradient.
        let sum = inside.iter().find(|op| step.ops[**op].name == ADD).and_then(taken);
        let Some(tensor) = sum.or_else(|| inside.iter().find_map(taken)) else { continue };
        let value = &step.tensors[tensor].value;
        if value.is_sparse() {
            return Err(Error::SparseAveraged { shape: value.shape.to_vec() });
        }
        found.push(Gradient { function, tensor, elements: value.numel() as i64, dtype: value.dtype });
    }
    if found.is_empty() {
        return Err(Error::NothingToDo {
            reason: "no gradient of a parameter of known shape was found: record an execution trace of a training step"
                .to_owned(),
        });
    }
    Ok(found)
}

/// Distinct types of gradients.
pub(super) fn dtypes(gradients: &[Gradient]) -> Vec<Dtype> {
    let mut all = Vec::new();
    for gradient in gradients {
        if !all.contains(&gradient.dtype) {
            all.push(gradient.dtype);
        }
    }
    all
}
