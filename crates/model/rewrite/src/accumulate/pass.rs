//! Ops that run for each batch: the forward and the backward pass.

use rustc_hash::FxHashSet;
use steptime_graph::HostThreadId;
use steptime_step::{OpId, StepIr};

use super::inputs;
use crate::error::Error;
use crate::passes::Passes;
use crate::rule::Facts;

/// The outermost ops of one batch.
pub(super) struct Pass {
    /// Ops of the script, up to the end of the backward pass.
    pub script: Vec<OpId>,
    /// Ops of the autograd engine's thread; empty where it runs on the script's.
    pub engine: Vec<OpId>,
}

impl Pass {
    /// The pass of a step. It ends before ops that take gradients, and before the first update.
    pub fn find(step: &StepIr, facts: &Facts<'_>) -> Result<Pass, Error> {
        let Passes { mut script, before_update, forward, backward } = Passes::find(step);
        let is_function = |op: &OpId| step.event(*op).is_engine();
        let mut engine = backward;
        engine.retain(is_function);
        if engine.is_empty() {
            return Err(Error::NothingToDo { reason: "the step has no backward pass".to_owned() });
        }
        let numbers: FxHashSet<i64> = engine.iter().filter_map(|&op| step.ops[op].sequence).collect();
        let has_gradient = |op: OpId| step.ops[op].sequence.is_some_and(|number| numbers.contains(&number));
        let again = script[before_update..].iter().filter(|op| !is_function(op));
        if let Some(&op) = again.clone().find(|&&op| step.subtree(op).into_iter().any(has_gradient)) {
            return Err(Error::SeveralUpdates { op: step.ops[op].name.clone() });
        }
        script.truncate(before_update);
        let forward: FxHashSet<OpId> = forward.into_iter().collect();
        let end = match script.iter().rposition(is_function) {
            Some(last) => last + 1,
            None => script.iter().position(|op| !forward.contains(op)).unwrap_or(script.len()),
        };
        script.truncate(end);
        engine.retain(|&op| step.ops[op].thread != HostThreadId::MAIN);
        let fixed = inputs::fixed(step, &script, facts);
        script.retain(|op| !fixed.contains(op));
        Ok(Pass { script, engine })
    }

    /// All ops, in order.
    pub fn ops(&self) -> Vec<OpId> {
        self.script.iter().chain(&self.engine).copied().collect()
    }
}
