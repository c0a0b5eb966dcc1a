//! The optimizer's step in another of PyTorch's forms: tensor by tensor, over lists, or fused.

mod counts;
mod fused;
mod lists;
mod read;
mod roles;
mod write;

use steptime_aten::Dtype;
use steptime_aten::optimizer::{Form, Rule as Update};
use steptime_step::{OpId, Patch, Place, StepIr};

use self::lists::{FoundOptimizer, Lists};
use self::roles::Role;
use self::write::Writer;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Converts optimizers to another form: `fused=True`, `foreach=True`, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Optimizer {
    /// The new form.
    pub form: Form,
}

impl Rule for Optimizer {
    fn name(&self) -> &'static str {
        match self.form {
            Form::Loop => "loop-optimizer",
            Form::Foreach => "foreach-optimizer",
            Form::Fused => "fuse-optimizer",
        }
    }

    fn stage(&self) -> Stage {
        Stage::Optimizer
    }

    fn effort(&self) -> &'static str {
        "one argument of the optimizer: fused=True, or foreach"
    }

    fn risk(&self) -> &'static str {
        "the last bits of the parameters differ"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let running = step.running().into_iter();
        let steps: Vec<OpId> =
            running.filter(|&op| step.ops[op].annotation && step.event(op).is_optimizer_step()).collect();
        let nothing = |reason: &str| Error::NothingToDo { reason: reason.to_owned() };
        if steps.is_empty() {
            return Err(nothing("no optimizer is marked in the step"));
        }
        let mut patch = Patch::new(self.name());
        let mut why = Vec::new();
        for at in steps {
            let read = match read::read(step, at) {
                // Sparse gradients are updated tensor by tensor already.
                Err(Error::SparseGradients { .. }) if self.form == Form::Loop => continue,
                read => read?,
            };
            if read.optimizer.form == self.form {
                continue;
            }
            if self.form == Form::Fused && read.optimizer.rule == Update::RmsProp {
                return Err(Error::NoFusedForm { name: step.ops[at].name.clone() });
            }
            why.push(self.rewrite(step, at, &read, &mut patch));
        }
        if patch.is_empty() {
            return Err(nothing("every optimizer has that form already"));
        }
        patch.why = why.join("; ");
        Ok(vec![patch])
    }
}

impl Optimizer {
    /// Replaces the ops inside an annotation by those of the new form; returns a description of the change.
    fn rewrite(&self, step: &StepIr, at: OpId, read: &FoundOptimizer, patch: &mut Patch) -> String {
        let optimizer = steptime_aten::optimizer::Optimizer { form: self.form, ..read.optimizer };
        let groups = match read.optimizer.form {
            Form::Loop => by_type(step, &read.groups),
            Form::Foreach | Form::Fused => read.groups.clone(),
        };
        let ops = Writer { step, patch, optimizer }.ops(&groups);
        let children = step.ops[at].children.clone();
        let parameters: usize =
            groups.iter().map(|lists| lists.get(&Role::Parameter).map_or(0, Vec::len)).sum();
        let why = format!(
            "{}: {parameters} parameters, {} to {} ops",
            step.ops[at].name,
            children.len(),
            ops.len()
        );
        patch.remove.extend(children);
        patch.insert.extend(ops.into_iter().map(|op| (Place::LastIn(at), op)));
        why
    }
}

/// Parameters that were updated one by one, grouped into lists of the same type.
fn by_type(step: &StepIr, groups: &[Lists]) -> Vec<Lists> {
    let mut all: Vec<(Option<Dtype>, Lists)> = Vec::new();
    for lists in groups {
        let first = lists.get(&Role::Parameter).and_then(|list| list.first());
        let dtype = first.map(|&tensor| step.tensors[tensor].value.dtype);
        match all.iter_mut().find(|(other, _)| *other == dtype) {
            Some((_, same)) => {
                for (&role, list) in lists {
                    same.entry(role).or_default().extend(list);
                }
            }
            None => all.push((dtype, lists.clone())),
        }
    }
    all.into_iter().map(|(_, lists)| lists).collect()
}

/// Rule of an optimizer, and whether it decays weights; `annotation` is around its step.
pub(crate) fn rule_of(step: &StepIr, annotation: OpId) -> Result<(Update, bool), Error> {
    read::read(step, annotation).map(|read| (read.optimizer.rule, read.optimizer.weight_decay))
}
