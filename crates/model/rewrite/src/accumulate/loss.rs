//! Division of the loss by the number of batches, so that accumulated gradients are their mean.

use steptime_aten::{Arg, Device, Tensor};
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId, Uses};

use crate::new_ops::op;
use crate::passes::Passes;

/// First op of a backward pass: it creates the gradient of the loss by itself.
const BEGINS: &str = "aten::ones_like";

/// The patch that divides each loss; `None` where no backward pass begins with one.
pub(super) fn divided(step: &StepIr, rule: &'static str) -> Option<Patch> {
    let uses = Uses::find(step);
    let mut patch = Patch::new(rule);
    for begin in Passes::find(step).script.into_iter().filter(|&op| step.ops[op].name == BEGINS) {
        if let Some(loss) = Loss::find(step, &uses, begin) {
            loss.divide(step, &mut patch);
        }
    }
    (!patch.is_empty()).then_some(patch)
}

/// A loss, and the begin of its backward pass.
struct Loss {
    begin: OpId,
    loss: TensorId,
    /// Gradient of the loss.
    ones: TensorId,
    /// First backward function, as run by the engine.
    first: OpId,
}

impl Loss {
    fn find(step: &StepIr, uses: &Uses, begin: OpId) -> Option<Loss> {
        let call = step.ops[begin].call.as_deref()?;
        let (loss, ones) = (call.takes().next()?, call.gives().next()?);
        let takers = uses.consumers(ones).iter().map(|&op| step.outermost(op));
        let first = takers.into_iter().find(|&op| step.event(op).is_engine())?;
        (step.tensors[loss].value.numel() == 1).then_some(Loss { begin, loss, ones, first })
    }

    fn divide(&self, step: &StepIr, patch: &mut Patch) {
        let mean = self.quotient(step, patch, self.loss);
        let gradient = self.quotient(step, patch, self.ones);
        let own = |op: &OpId| step.ops[*op].call.is_some();
        let changed = step.subtree(self.begin).into_iter().filter(own).map(|op| (op, self.loss, mean.1));
        let within = step.subtree(self.first).into_iter().filter(own).map(|op| (op, self.ones, gradient.1));
        for (op, was, is) in changed.chain(within) {
            let Some(call) = step.ops[op].call.as_deref().filter(|call| call.takes().any(|one| one == was))
            else {
                continue;
            };
            let replaced = call.with(&mut |tensor| if tensor == was { is } else { tensor });
            patch.change.push((op, replaced));
        }
        patch.insert.push((Place::Before(self.begin), mean.0));
        let call = Call { inputs: vec![Arg::Tensor(self.ones)], ..Call::default() };
        let function = NewOp::new("DivBackward0", call).with(vec![gradient.0]);
        // Within the first event of the engine, as that waits for the script.
        let place = match step.ops[self.first].children.first() {
            Some(&inside) => Place::Before(inside),
            None => Place::LastIn(self.first),
        };
        patch.insert.push((place, function));
    }

    /// A tensor divided by a scalar on the host.
    fn quotient(&self, step: &StepIr, patch: &mut Patch, of: TensorId) -> (NewOp, TensorId) {
        let value = step.tensors[of].value.clone();
        let number =
            patch.tensor(step, Tensor { device: Device::Cpu, ..Tensor::contiguous(&[], value.dtype) });
        let result = patch.tensor(step, value);
        (op("aten::div", vec![Arg::Tensor(of), Arg::Tensor(number)], result), result)
    }
}
