//! Rule of an optimizer in a step, and the tensors that it updates.

use steptime_aten::optimizer::{Form, Optimizer, Rule};
use steptime_aten::{Arg, Device};
use steptime_graph::names::EventName;
use steptime_step::{Call, OpId, StepIr, TensorId};

use super::fused;
use super::lists::{FoundOptimizer, Lists, sequence};
use super::roles::{self, Role};
use crate::error::Error;

/// The rules of an optimizer class, one per combination of its settings.
fn named(name: &str) -> &'static [Rule] {
    match name {
        "SGD" => &[
            Rule::Sgd { momentum: false, nesterov: false },
            Rule::Sgd { momentum: true, nesterov: false },
            Rule::Sgd { momentum: true, nesterov: true },
        ],
        "Adagrad" => &[Rule::Adagrad],
        "Adam" => &[Rule::Adam { amsgrad: false }, Rule::Adam { amsgrad: true }],
        "AdamW" => &[Rule::AdamW { amsgrad: false }, Rule::AdamW { amsgrad: true }],
        "RMSprop" => &[Rule::RmsProp],
        _ => &[],
    }
}

/// Reads the ops inside an optimizer's annotation.
pub(super) fn read(step: &StepIr, annotation: OpId) -> Result<FoundOptimizer, Error> {
    let label = &step.ops[annotation].name;
    let name = EventName::optimizer_class(label).unwrap_or(label).to_owned();
    let rules = named(&name);
    if rules.is_empty() {
        return Err(Error::UnknownOptimizer { name });
    }
    let ops: Vec<OpId> =
        step.ops[annotation].children.iter().copied().filter(|&op| on_device(step, op)).collect();
    let sparse = |op: OpId| {
        let tensors = step.ops[op].call.as_deref().into_iter().flat_map(Call::takes);
        tensors.into_iter().any(|tensor| step.tensors[tensor].value.is_sparse())
    };
    if ops.iter().any(|&op| sparse(op)) {
        return Err(Error::SparseGradients { name });
    }
    let found = fused::read(step, &ops, rules).or_else(|| in_sequence(step, &ops, rules));
    let found = found.filter(|read| read.groups.iter().all(even));
    found.ok_or_else(|| {
        let names = ops.iter().take(8).map(|&op| step.ops[op].name.as_str()).collect::<Vec<_>>().join(", ");
        Error::UnknownUpdate { name, ops: names }
    })
}

/// Whether all parameters have the same kinds of tensors.
fn even(lists: &Lists) -> bool {
    let parameters = lists.get(&Role::Parameter).map_or(0, Vec::len);
    parameters > 0 && lists.iter().all(|(role, list)| *role == Role::Divisor || list.len() == parameters)
}

/// Whether an op works on device tensors.
fn on_device(step: &StepIr, op: OpId) -> bool {
    let first = step.ops[op].call.as_deref().and_then(|call| call.takes().next());
    first.is_some_and(|first| step.tensors[first].value.device != Device::Cpu)
}

/// Reads a sequence of ops that repeats, once per list or once per parameter.
fn in_sequence(step: &StepIr, ops: &[OpId], rules: &[Rule]) -> Option<FoundOptimizer> {
    for form in [Form::Foreach, Form::Loop] {
        for (&rule, weight_decay) in rules.iter().flat_map(|rule| [(rule, false), (rule, true)]) {
            let optimizer = Optimizer { rule, weight_decay, form };
            let sequence = sequence(&optimizer, 1);
            let fits = !ops.is_empty()
                && ops.len().is_multiple_of(sequence.len())
                && ops.iter().zip(sequence.iter().cycle()).all(|(&op, call)| step.ops[op].name == call.name);
            if fits {
                let roles = roles::assign(rule, &sequence);
                let groups = ops.chunks(sequence.len()).map(|chunk| lists(step, chunk, &roles)).collect();
                return Some(FoundOptimizer { optimizer, groups });
            }
        }
    }
    None
}

/// The tensors of an update by role, in the order of first occurrence.
fn lists(step: &StepIr, ops: &[OpId], roles: &[roles::Roles]) -> Lists {
    let mut lists = Lists::default();
    for (&op, (takes, _)) in ops.iter().zip(roles) {
        let Some(call) = &step.ops[op].call else { continue };
        let sized = |arg: &&Arg<TensorId>| {
            arg.tensors().first().is_some_and(|&tensor| step.tensors[tensor].value.device != Device::Cpu)
        };
        for (&role, arg) in takes.iter().zip(call.inputs.iter().filter(sized)) {
            lists.entry(role).or_insert_with(|| arg.tensors().to_vec());
        }
    }
    lists
}
