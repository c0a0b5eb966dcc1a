//! Gradients of biases in the pass of the slope before them.

use steptime_aten::Arg;
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId, Uses};

use crate::counted::counted;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// The slope of a ReLU, and both in one pass.
const SLOPE: &str = "aten::threshold_backward";
const FUSED: &str = "steptime::slope";

/// Sums the columns of a gradient in the pass that applies the slope of a ReLU to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct FuseBiasGradients;

impl Rule for FuseBiasGradients {
    fn name(&self) -> &'static str {
        "fuse-bias-gradients"
    }

    fn stage(&self) -> Stage {
        Stage::Products
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, medium: a kernel for the slope and the sums of its columns"
    }

    fn risk(&self) -> &'static str {
        "none: sums are rounded in another order"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let uses = Uses::find(step);
        let mut patch = Patch::new(self.name());
        for op in step.running().into_iter().filter(|&op| step.ops[op].name == SLOPE) {
            let Some((call, sum, sums)) = layer(step, &uses, op) else { continue };
            let outputs = call.outputs.iter().cloned().chain([Arg::Tensor(sums)]).collect();
            let fused = Call { outputs, ..call.clone() };
            patch.insert.push((Place::Before(op), NewOp::new(FUSED, fused)));
            patch.remove.extend([op, sum]);
        }
        if patch.is_empty() {
            let reason = format!("no gradient of a bias is summed behind {SLOPE}");
            return Err(Error::NothingToDo { reason });
        }
        patch.why = format!(
            "{} of biases computed in the pass of the slope before them",
            counted(patch.insert.len(), "gradient", "gradients")
        );
        Ok(vec![patch])
    }
}

/// The call of a slope, the op that sums its columns, and the sums.
fn layer<'s>(step: &'s StepIr, uses: &Uses, slope: OpId) -> Option<(&'s Call, OpId, TensorId)> {
    let call = step.ops[slope].call.as_deref()?;
    let gradient = call.gives().next()?;
    let &[_, columns] = &step.tensors[gradient].value.shape[..] else { return None };
    let sum = uses.consumers(gradient).iter().copied().find(|&op| step.ops[op].name == "aten::sum")?;
    let sums = step.ops[sum].call.as_deref()?.gives().next()?;
    (step.tensors[sums].value.shape[..] == [1, columns]).then_some((call, sum, sums))
}
