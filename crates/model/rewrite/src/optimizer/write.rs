//! The ops of an update in one of its forms.

use steptime_aten::optimizer::{Form, Optimizer, Rule};
use steptime_aten::{Arg, Device, OpCall, Tensor};
use steptime_step::{Call, NewOp, Patch, StepIr, TensorId};

use super::counts::Counts;
use super::fused;
use super::lists::{self, Lists};
use super::roles::{self, Role, Roles};

/// State for writing the ops of an update.
pub(super) struct Writer<'w> {
    pub step: &'w StepIr,
    pub patch: &'w mut Patch,
    pub optimizer: Optimizer,
}

impl Writer<'_> {
    /// The ops that update parameters in the writer's form.
    pub fn ops(&mut self, groups: &[Lists]) -> Vec<NewOp> {
        match self.optimizer.form {
            Form::Loop => groups.iter().flat_map(one_by_one).flat_map(|lists| self.update(lists)).collect(),
            Form::Foreach => groups.iter().flat_map(|lists| self.update(lists.clone())).collect(),
            Form::Fused => groups
                .iter()
                .flat_map(|lists| fused::write(self.step, self.patch, &self.optimizer, lists))
                .collect(),
        }
    }

    fn tensor(&mut self, value: Tensor) -> TensorId {
        self.patch.tensor(self.step, value)
    }

    /// A sequence of ops on lists, or on one parameter, with the ops on step counts.
    fn update(&mut self, mut lists: Lists) -> Vec<NewOp> {
        let parameters = lists.get(&Role::Parameter).map_or(0, Vec::len);
        let sequence = lists::sequence(&self.optimizer, parameters);
        let roles = roles::assign(self.optimizer.rule, &sequence);
        let mut counts = Counts { step: self.step, patch: self.patch, form: self.optimizer.form, parameters };
        let rule = self.optimizer.rule;
        let adam = matches!(rule, Rule::Adam { .. } | Rule::AdamW { .. });
        let mut ops = match rule {
            Rule::Sgd { .. } => Vec::new(),
            _ => counts.added(),
        };
        let items = match (rule, self.optimizer.form) {
            (Rule::Adagrad, _) => counts.read(1),
            (_, Form::Loop) if adam => counts.read(1),
            _ if adam => counts.read(2),
            _ => Vec::new(),
        };
        // Numbers that depend on the count are computed where they are first needed.
        let needed = if adam { "addcmul_" } else { "" };
        if needed.is_empty() {
            ops.extend(items.iter().cloned());
        }
        for (call, roles) in sequence.iter().zip(&roles) {
            ops.extend(self.op(call, roles, &mut lists));
            if roles::base(&call.name) == needed {
                ops.extend(items.iter().cloned());
            }
        }
        ops
    }

    /// One op, with its tensors by role.
    fn op(&mut self, call: &OpCall, (takes, gives): &Roles, lists: &mut Lists) -> Option<NewOp> {
        let mut roles = takes.iter();
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for arg in &call.inputs {
            let number = |tensor: &Tensor| tensor.device == Device::Cpu;
            inputs.push(match arg {
                Arg::Tensors(_) => Arg::Tensors(lists.get(roles.next()?)?.clone()),
                Arg::Tensor(tensor) if !number(tensor) => Arg::Tensor(*lists.get(roles.next()?)?.first()?),
                other => other.map(|tensor| self.tensor(tensor.clone())),
            });
        }
        let first = lists.get(takes.first()?)?.clone();
        let listed = matches!(inputs.first(), Some(Arg::Tensors(_)));
        let mut children = Vec::new();
        let made = match gives {
            None => first,
            Some(role) => {
                let made: Vec<TensorId> = first.iter().map(|&like| self.like(like)).collect();
                if listed {
                    children = made.iter().map(|&tensor| self.empty(tensor)).collect();
                }
                lists.insert(*role, made.clone());
                made
            }
        };
        let outputs = match (listed, gives) {
            (true, None) => Vec::new(),
            (true, Some(_)) => vec![Arg::Tensors(made)],
            (false, _) => vec![Arg::Tensor(*made.first()?)],
        };
        Some(NewOp::new(&call.name, Call { inputs, outputs, settings: call.settings }).with(children))
    }

    fn value(&self, tensor: TensorId) -> Option<&Tensor> {
        self.step.tensors.get(tensor).map(|tensor| &tensor.value)
    }

    /// A new tensor like another, which may itself be new.
    fn like(&mut self, tensor: TensorId) -> TensorId {
        let value = self.value(tensor).or_else(|| self.patch.added(self.step, tensor)).cloned();
        let value = value.unwrap_or_else(|| Tensor::contiguous(&[], steptime_aten::Dtype::F32));
        self.tensor(value)
    }

    /// The op that allocates a tensor of a list.
    fn empty(&self, tensor: TensorId) -> NewOp {
        let value = self.patch.added(self.step, tensor);
        let ints = |sizes: &[i64]| Arg::Ints(sizes.iter().copied().collect());
        let inputs = value.map(|value| vec![ints(&value.shape), ints(&value.strides)]).unwrap_or_default();
        let outputs = vec![Arg::Tensor(tensor)];
        NewOp::new("aten::empty_strided", Call { inputs, outputs, ..Call::default() })
    }
}

/// Lists of one parameter each.
fn one_by_one(lists: &Lists) -> Vec<Lists> {
    let count = lists.get(&Role::Parameter).map_or(0, Vec::len);
    let at =
        |at: usize| lists.iter().filter_map(|(&role, list)| Some((role, vec![*list.get(at)?]))).collect();
    (0..count).map(at).collect()
}
