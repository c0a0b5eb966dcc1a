//! Operators of `steptime.operators` with dense gradients of the tables.

use steptime_step::{Patch, StepIr};

use super::library::Library;
use super::steptime_patches;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Embedding bags and dot interaction by the operators of `steptime.operators`, grouped into calls as by [`Operators`](super::Operators), with the
/// dense gradients of all tables of a call in one call.
///
/// The step's optimizer takes these gradients, and moves all rows: Adam, momentum and weight decay have the results of PyTorch.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenseOperators;

impl Rule for DenseOperators {
    fn name(&self) -> &'static str {
        "operators-dense"
    }

    fn stage(&self) -> Stage {
        Stage::Operators
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, large: a kernel for the dense gradients of several tables"
    }

    fn risk(&self) -> &'static str {
        "none: the gradients are the same"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        steptime_patches(step, Library::SteptimeDense, self.name())
    }
}
