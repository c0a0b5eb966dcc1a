//! Kernels of `steptime-runtime` in place of PyTorch's.

use steptime_aten::Settings;
use steptime_step::{Patch, StepIr};

use crate::counted::counted;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Ops that have other kernels there.
const OPS: [&str; 9] = [
    "aten::_embedding_bag_dense_backward",
    "aten::_fused_adagrad_",
    "aten::_fused_adam_",
    "aten::_fused_adamw_",
    "aten::_fused_sgd_",
    "aten::_addmm_activation",
    "aten::addmm",
    "aten::bmm",
    "aten::mm",
];

/// Runs ops with the kernels of `steptime-runtime`: products over rows with zeros behind them, dense gradients of tables from sorted lookups, and
/// an optimizer in one launch.
#[derive(Debug, Clone, Copy, Default)]
pub struct RuntimeKernels;

impl Rule for RuntimeKernels {
    fn name(&self) -> &'static str {
        "runtime-kernels"
    }

    fn stage(&self) -> Stage {
        Stage::Kernels
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, large: kernels of its own"
    }

    fn risk(&self) -> &'static str {
        "none: sums are rounded in another order"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let mut patch = Patch::new(self.name());
        for op in step.running().into_iter().filter(|&op| OPS.contains(&&*step.ops[op].name)) {
            let Some(mut call) = step.ops[op].call.as_deref().cloned() else { continue };
            call.settings = Settings { runtime: true, ..call.settings };
            patch.change.push((op, call));
        }
        if patch.is_empty() {
            let reason = "no op is a product, a dense gradient of a table or a fused optimizer".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        patch.why = format!("{} by kernels of steptime-runtime", counted(patch.change.len(), "op", "ops"));
        Ok(vec![patch])
    }
}
