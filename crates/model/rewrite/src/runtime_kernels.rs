//! Kernels of `steptime-runtime` in place of PyTorch's.

use steptime_aten::{Arg, Dtype, Settings, Tensor};
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId};

use crate::counted::counted;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Ops that have other kernels there.
const OPS: [&str; 10] = [
    "aten::_embedding_bag",
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

/// Ops of bags before which the runtime sums the sizes of bags, and the place of the offsets or sizes among their arguments.
const SIZES: [(&str, usize); 2] = [("aten::_embedding_bag", 2), ("aten::_embedding_bag_dense_backward", 3)];

/// The op that sends values of the first rank to all: constant indices in a step of jobs, which the runtime does not send.
const BROADCAST: &str = "c10d::broadcast_";

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
            let sizes = SIZES.iter().find(|(name, _)| *name == step.ops[op].name);
            if let Some(Arg::Tensor(own)) = sizes.and_then(|&(_, at)| call.inputs.get_mut(at)) {
                *own = offsets(step, op, *own, &mut patch);
            }
            patch.change.push((op, call));
        }
        let integers = |op: OpId| {
            let call = step.ops[op].call.as_deref();
            let sent = call.and_then(|call| call.takes().next());
            sent.is_some_and(|sent| step.tensors[sent].value.dtype == Dtype::I64)
        };
        let sent = step.running().into_iter().filter(|&op| step.ops[op].name == BROADCAST && integers(op));
        patch.remove.extend(sent);
        if patch.is_empty() {
            let reason = "no op is a product, a dense gradient of a table or a fused optimizer".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        patch.why = format!("{} by kernels of steptime-runtime", counted(patch.change.len(), "op", "ops"));
        Ok(vec![patch])
    }
}

/// Inserts the sums of sizes before an op; returns the offsets.
fn offsets(step: &StepIr, op: OpId, sizes: TensorId, patch: &mut Patch) -> TensorId {
    let value = Tensor { offset: 0, ..step.tensors[sizes].value.clone() };
    let sums = patch.tensor(step, value);
    let call = Call {
        inputs: vec![Arg::Tensor(sizes), Arg::Int(0), Arg::None],
        outputs: vec![Arg::Tensor(sums)],
        ..Call::default()
    };
    patch.insert.push((Place::Before(op), NewOp::new("aten::cumsum", call)));
    sums
}
