//! Cross entropy of scores in one pass each way, in place of a division, a softmax, a pick of classes and their gradients.

use rustc_hash::FxHashSet;
use steptime_aten::{Arg, Dtype, Tensor};
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId, Uses};

use crate::counted::counted;
use crate::error::Error;
use crate::in_place::is_changed;
use crate::new_ops::function;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Outermost ops of a loss that may be replaced.
const LOSSES: [&str; 6] = [
    "aten::cross_entropy_loss",
    "aten::log_softmax",
    "aten::_log_softmax",
    "aten::nll_loss_nd",
    "aten::nll_loss",
    "aten::nll_loss_forward",
];
/// Ops that copy a tensor in another type.
const CASTS: [&str; 2] = ["aten::to", "aten::_to_copy"];
/// PyTorch's code for the mean of all losses.
const MEAN: i64 = 1;

/// Computes the cross entropy of a matrix of scores, and its gradient, in one pass over the scores each. A division of the scores by a number before
/// it is part of both.
#[derive(Debug, Clone, Copy, Default)]
pub struct FuseCrossEntropy;

impl Rule for FuseCrossEntropy {
    fn name(&self) -> &'static str {
        "fuse-cross-entropy"
    }

    fn stage(&self) -> Stage {
        Stage::Losses
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, medium: a kernel for the loss and one for its gradient"
    }

    fn risk(&self) -> &'static str {
        "none: sums are rounded in another order"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let uses = Uses::find(step);
        let mut patch = Patch::new(self.name());
        let mut count = 0;
        for op in step.running().into_iter().filter(|&op| step.ops[op].name == "aten::_log_softmax") {
            if let Some(found) = CrossEntropy::find(step, &uses, op) {
                found.replace(step, &mut patch);
                count += 1;
            }
        }
        if count == 0 {
            let reason = "no mean cross entropy of a matrix of scores has its gradient computed".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        patch.why = format!(
            "{} of scores computed in one pass each way",
            counted(count, "cross entropy", "cross entropies")
        );
        Ok(vec![patch])
    }
}

/// A cross entropy, and its gradient.
struct CrossEntropy {
    scores: TensorId,
    target: TensorId,
    loss: TensorId,
    total: TensorId,
    /// Gradient of the loss, and of the scores.
    grad: TensorId,
    to: TensorId,
    divisor: Arg<TensorId>,
    /// Outermost ops that are replaced, ...
    removed: Vec<OpId>,
    /// ... the one that computes the loss, and the one that computes the gradient of the scores.
    forward: OpId,
    backward: OpId,
}

impl CrossEntropy {
    fn find(step: &StepIr, uses: &Uses, softmax: OpId) -> Option<CrossEntropy> {
        let call = |op: OpId| step.ops[op].call.as_deref();
        let input = |op: OpId, at: usize| call(op)?.inputs.get(at)?.tensors().first().copied();
        let (from, logarithms) = (input(softmax, 0)?, call(softmax)?.gives().next()?);
        if step.tensors[from].value.shape.len() != 2 || step.ops[softmax].captured {
            return None;
        }
        let named = |tensor: TensorId, name: &str| {
            uses.consumers(tensor).iter().copied().find(|&op| step.ops[op].name == name)
        };
        let picks = named(logarithms, "aten::nll_loss_forward")?;
        let sets = named(logarithms, "aten::nll_loss_backward")?;
        let goes_back = named(logarithms, "aten::_log_softmax_backward_data")?;
        let is_mean = |op: OpId, first: usize| {
            let inputs = &call(op)?.inputs;
            let plain = matches!(inputs.get(first), Some(Arg::None));
            (plain && inputs.get(first + 1) == Some(&Arg::Int(MEAN))).then_some(())
        };
        is_mean(picks, 2).and_then(|()| is_mean(sets, 3))?;
        let mut results = call(picks)?.gives();
        let (loss, total) = (results.next()?, results.next()?);
        let of_logarithms = call(sets)?.gives().next()?;
        let of_input = call(goes_back)?.gives().next()?;
        let (target, grad) = (input(picks, 1)?, input(sets, 0)?);
        if input(goes_back, 0)? != of_logarithms || input(sets, 2)? != target || input(sets, 6)? != total {
            return None;
        }
        let root = |op: OpId| step.outermost(op);
        let [forward, backward] = [picks, goes_back].map(root);
        let losses = [softmax, picks].map(root);
        if losses.iter().any(|&op| !LOSSES.contains(&&*step.ops[op].name)) {
            return None;
        }
        let mut found = CrossEntropy {
            scores: from,
            target,
            loss,
            total,
            grad,
            to: of_input,
            divisor: Arg::Float(1.0),
            removed: [softmax, picks, sets, goes_back].map(root).to_vec(),
            forward,
            backward,
        };
        let used_inside = |tensor: TensorId, removed: &[OpId]| {
            uses.consumers(tensor).iter().all(|&op| removed.contains(&step.outermost(op)))
        };
        if !used_inside(logarithms, &found.removed) || !used_inside(of_logarithms, &found.removed) {
            return None;
        }
        found.take_scaling(step, uses);
        let [scores, gradients] = [found.scores, found.to].map(|tensor| step.tensors[tensor].value.dtype);
        let is_known = scores == gradients && [Dtype::F32, Dtype::Bf16].contains(&scores);
        (is_known && !is_changed(step, found.scores)).then_some(found)
    }

    /// Takes the ops between scores and loss, and those between their gradients, where they are the same: a cast of 16 bits, and a division.
    fn take_scaling(&mut self, step: &StepIr, uses: &Uses) {
        let mut now =
            Scaled { tensor: self.scores, to: self.to, removed: self.removed.clone(), last: self.backward };
        if let Some(cast) =
            now.next(step, uses, |step, op, _| CASTS.contains(&&*step.ops[op].name).then_some(Arg::None))
        {
            now = cast.0;
            now.keep(self);
        }
        let divides = |step: &StepIr, op: OpId, _: TensorId| {
            let call = step.ops[op].call.as_deref().filter(|_| step.ops[op].name == "aten::div")?;
            let is_number = |arg: &Arg<TensorId>| match arg {
                Arg::Tensor(tensor) => step.tensors[*tensor].value.shape.is_empty(),
                Arg::Int(_) | Arg::Float(_) => true,
                _ => false,
            };
            call.inputs.get(1).filter(|arg| is_number(arg)).cloned()
        };
        if let Some((next, divisor)) = now.next(step, uses, divides) {
            next.keep(self);
            self.divisor = divisor;
        }
    }

    /// Inserts both calls in place of the ops.
    fn replace(&self, step: &StepIr, patch: &mut Patch) {
        let value = &step.tensors[self.scores].value;
        let sums = Tensor { device: value.device, ..Tensor::contiguous(&[value.size(0)], Dtype::F64) };
        let sums = patch.tensor(step, sums);
        let tensor = Arg::Tensor;
        let call = Call {
            inputs: vec![tensor(self.scores), tensor(self.target), self.divisor.clone()],
            outputs: [self.loss, self.total, sums].map(tensor).to_vec(),
            ..Call::default()
        };
        patch.insert.push((Place::Before(self.forward), NewOp::new("steptime::cross_entropy", call)));
        let taken = [self.scores, self.grad, self.target, self.total, sums];
        let inputs = taken.map(tensor).into_iter().chain([self.divisor.clone()]).collect();
        let call = Call { inputs, outputs: vec![tensor(self.to)], ..Call::default() };
        let gradient = NewOp::new("steptime::cross_entropy_backward", call);
        let gradient = function("CrossEntropyBackward", &[self.grad], vec![gradient]);
        patch.insert.push((Place::Before(self.backward), gradient));
        let mut seen = FxHashSet::default();
        patch.remove.extend(self.removed.iter().filter(|op| seen.insert(**op)));
    }
}

/// Scores and their gradient so far, the ops that are replaced, and the last function of the backward pass among them.
#[derive(Debug, Clone)]
struct Scaled {
    tensor: TensorId,
    to: TensorId,
    removed: Vec<OpId>,
    last: OpId,
}

impl Scaled {
    /// The scores before one more op, and the gradient behind its own; `what` returns what both ops have in common.
    fn next(
        &self,
        step: &StepIr,
        uses: &Uses,
        what: impl Fn(&StepIr, OpId, TensorId) -> Option<Arg<TensorId>>,
    ) -> Option<(Scaled, Arg<TensorId>)> {
        let calls = |op: OpId, tensor: TensorId| {
            let call = step.ops[op].call.as_deref()?;
            Some((call.takes().next()?, call.gives().next()?, what(step, op, tensor)?))
        };
        let made = uses.producer(self.tensor)?;
        let maker = step
            .around(made)
            .find(|&op| calls(op, self.tensor).is_some_and(|(_, to, _)| to == self.tensor))?;
        let (from, _, common) = calls(maker, self.tensor)?;
        let reader = uses.consumers(self.to).iter().copied();
        let reader = reader.filter(|&op| calls(op, self.to).is_some_and(|(from, ..)| from == self.to));
        let reader = reader.min_by_key(|&op| step.around(op).count())?;
        let (_, to, other) = calls(reader, self.to)?;
        let outermost = |op: OpId| step.outermost(op);
        let mut removed = self.removed.clone();
        removed.extend([maker, reader].map(outermost));
        // An op around several others may be replaced as a whole only where it is one of these.
        let is_alone = [maker, reader].into_iter().all(|op| {
            let root = outermost(op);
            root == op || self.removed.contains(&root) || step.event(root).is_engine()
        });
        let inside =
            |tensor: TensorId| uses.consumers(tensor).iter().all(|&op| removed.contains(&outermost(op)));
        let all_inside = inside(self.tensor) && inside(self.to);
        let next = Scaled { tensor: from, to, removed, last: outermost(reader) };
        (common == other && is_alone && all_inside).then_some((next, common))
    }

    fn keep(&self, found: &mut CrossEntropy) {
        (found.scores, found.to, found.backward) = (self.tensor, self.to, self.last);
        found.removed.clone_from(&self.removed);
    }
}
