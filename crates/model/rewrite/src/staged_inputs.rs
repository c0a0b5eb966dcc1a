//! Copies of the next batch as one launch.

use steptime_step::{Patch, StepIr};

use crate::counted::counted;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Launches the copies of the next batch together with the step, from one staging buffer.
#[derive(Debug, Clone, Copy, Default)]
pub struct StagedInputs;

impl Rule for StagedInputs {
    fn name(&self) -> &'static str {
        "staged-inputs"
    }

    fn stage(&self) -> Stage {
        Stage::Capture
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, small: all inputs in one pinned tensor"
    }

    fn risk(&self) -> &'static str {
        "a batch must not be written while it is copied"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let mut patch = Patch::new(self.name());
        let ahead = step.running().into_iter().filter(|&op| step.ops[op].ahead);
        patch.capture = ahead.map(|op| step.outermost(op)).collect();
        if patch.capture.is_empty() {
            let reason = "no copy is for the next step: prefetch-inputs makes them so".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        let copies = counted(patch.capture.len(), "copy", "copies");
        patch.why = format!("{copies} for the next step launched with the CUDA graph");
        Ok(vec![patch])
    }
}
