//! Derivation of every op from its arguments, as if it had not been recorded: the prediction without measured calls and times.

use steptime_step::{OpId, Patch, StepIr};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Derives calls, kernels and times of every op with arguments from these arguments alone. It checks the definitions of ops: the derived step should
/// equal the recorded one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Derive;

impl Rule for Derive {
    fn name(&self) -> &'static str {
        "derive"
    }

    fn stage(&self) -> Stage {
        Stage::Derivation
    }

    fn effort(&self) -> &'static str {
        "none: it is the same step"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let mut patch = Patch::new(self.name());
        // Functions of the engine take and give tensors too, and launch nothing.
        let is_op = |op: &OpId| step.ops[*op].arguments().is_some() && !step.event(*op).is_backward();
        patch.derive.extend(step.running().into_iter().filter(is_op));
        if patch.is_empty() {
            return Err(Error::NothingToDo { reason: "no op has known arguments".to_owned() });
        }
        patch.why = format!("{} ops derived from their arguments", patch.derive.len());
        Ok(vec![patch])
    }
}
