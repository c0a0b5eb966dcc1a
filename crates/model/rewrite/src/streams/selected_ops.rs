//! Chosen ops on a separate stream.

use steptime_step::Patch;
use steptime_step::StepIr;

use super::units::Units;
use super::{StreamMoves, moved, nothing, refused};
use crate::counted::counted;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;
use crate::selection::Selection;

/// Runs some ops of the forward pass on a second stream, with the functions that differentiate them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondStream {
    /// The ops.
    pub ops: Vec<Selection>,
}

impl Rule for SecondStream {
    fn name(&self) -> &'static str {
        "on-stream"
    }

    fn stage(&self) -> Stage {
        Stage::ChosenStreams
    }

    fn effort(&self) -> &'static str {
        "medium: torch.cuda.stream around the ops, wait_stream before and after"
    }

    fn risk(&self) -> &'static str {
        "a missing wait gives wrong numbers; tensors used on two streams need record_stream"
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let chosen = Selection::find(&self.ops, step, facts)?;
        let units = Units::find(step, facts.ops);
        refused(&units)?;
        let touched = |unit| chosen.iter().any(|&op| step.is_within(op, unit) || step.is_within(unit, op));
        let each = units.passes.forward.iter().zip(&units.weights);
        let forward: Vec<u32> =
            each.map(|(&unit, weight)| u32::from(weight.is_some() && touched(unit))).collect();
        let many = forward.iter().filter(|&&stream| stream > 0).count();
        if many == 0 {
            return Err(nothing(
                "none of the ops is in the forward pass and on the device: all other ops follow those"
                    .to_owned(),
            ));
        }
        let StreamMoves { mut patch, backward, waits } = moved(self.name(), &units, &forward);
        let functions = backward.iter().filter(|&&stream| stream > 0).count();
        patch.why = format!(
            "{} of the forward pass and {} of the backward pass go to a stream of their own; streams wait for one another {}",
            counted(many, "op", "ops"),
            counted(functions, "function", "functions"),
            counted(waits, "time", "times")
        );
        Ok(vec![patch])
    }
}
