//! Independent ops in another order: a copy of an input moves to right before its first consumer.

use steptime_aten::OpSet;
use steptime_step::{NewOp, OpId, Patch, Place, StepIr, TensorId, Uses};

use crate::counted::counted;
use crate::error::Error;
use crate::host_copy::HostCopy;
use crate::passes::{Passes, gives, takes};
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Delays copies of a batch to the device until they are needed: the device starts on the first while the host still issues the others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reorder;

impl Rule for Reorder {
    fn name(&self) -> &'static str {
        "reorder"
    }

    fn stage(&self) -> Stage {
        Stage::Copies
    }

    fn effort(&self) -> &'static str {
        "small: each input's .to(device) where it is first used"
    }

    fn risk(&self) -> &'static str {
        "the batch on the host must not be written before the last copy"
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let uses = Uses::find(step);
        let forward = Passes::find(step).forward;
        let copies: Vec<bool> = forward.iter().map(|&op| is_copy(step, &uses, op, facts.ops)).collect();
        let mut patch = Patch::new(self.name());
        let mut passed = 0;
        for (at, &op) in forward.iter().enumerate().filter(|(at, _)| copies[*at]) {
            let Some(first) = first_use(step, &forward, at) else { continue };
            let between = (at + 1..first).filter(|&other| !copies[other]).count();
            if between > 0 {
                passed += between;
                patch.remove.push(op);
                patch.insert.push((Place::Before(forward[first]), NewOp::repeat(step, op, &mut |id| id)));
            }
        }
        if patch.is_empty() {
            let reason = match copies.iter().filter(|copy| **copy).count() {
                0 => "no op copies an input to the device and waits for it".to_owned(),
                1 => "the only input is copied right before its first use already".to_owned(),
                count => format!("{count} inputs are copied right before their first use already"),
            };
            return Err(Error::NothingToDo { reason });
        }
        patch.why = format!(
            "{} of inputs moved to right before the first use, past {} that do not need them",
            counted(patch.remove.len(), "copy", "copies"),
            counted(passed, "op", "ops"),
        );
        Ok(vec![patch])
    }
}

/// Whether an op copies a tensor from before the step to the device while the host waits.
fn is_copy(step: &StepIr, uses: &Uses, op: OpId, ops: &OpSet) -> bool {
    let inside = step.subtree(op);
    let made = gives(step, op);
    let is_old = |id| uses.producer(id).is_none() || made.contains(&id);
    !inside.iter().any(|&op| step.ops[op].ahead)
        && inside.iter().any(|&op| HostCopy::find(step, op, ops).is_some_and(|copy| !copy.non_blocking))
        && takes(step, op).into_iter().all(is_old)
}

/// Position of the first op after position `at` that takes an output of the op at `at`, or writes one of its inputs.
fn first_use(step: &StepIr, forward: &[OpId], at: usize) -> Option<usize> {
    let storage = |id: TensorId| step.tensors[id].storage;
    let (given, taken) = (gives(step, forward[at]), takes(step, forward[at]));
    let same = |id: TensorId, others: &[TensorId]| {
        let shares = |other: TensorId| storage(id).is_some_and(|at| storage(other) == Some(at));
        others.iter().any(|&other| other == id || shares(other))
    };
    let needs = |&op: &OpId| {
        takes(step, op).into_iter().any(|id| same(id, &given))
            || gives(step, op).into_iter().any(|id| same(id, &taken))
    };
    Some(at + 1 + forward[at + 1..].iter().position(needs)?)
}
