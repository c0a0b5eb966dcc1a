//! Dense gradients of tables by the kernels of the operators.

use steptime_aten::Settings;
use steptime_step::{Patch, StepIr};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// The op whose kernels are replaced.
const GRADIENT: &str = "aten::_embedding_bag_dense_backward";

/// Computes dense gradients of tables with the kernels of the operators: lookups are sorted by row once, and each row is written once.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnTableGradients;

impl Rule for OwnTableGradients {
    fn name(&self) -> &'static str {
        "own-table-gradients"
    }

    fn stage(&self) -> Stage {
        Stage::Bags
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, medium: an autograd function around a kernel of its own"
    }

    fn risk(&self) -> &'static str {
        "none: sums are rounded in another order"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let mut patch = Patch::new(self.name());
        for op in step.running().into_iter().filter(|&op| step.ops[op].name == GRADIENT) {
            let Some(mut call) = step.ops[op].call.as_deref().cloned() else { continue };
            call.settings = Settings { own_table_gradients: true, ..call.settings };
            patch.change.push((op, call));
        }
        if patch.is_empty() {
            return Err(Error::NothingToDo { reason: format!("no op is {GRADIENT}") });
        }
        patch.why = format!("{} dense gradients of tables by kernels of the operators", patch.change.len());
        Ok(vec![patch])
    }
}
