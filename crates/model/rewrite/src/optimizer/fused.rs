//! The fused form: one op for all parameters.

use steptime_aten::optimizer::{self, Form, Gradient, Optimizer, Parameter, Rule};
use steptime_aten::{Arg, Dtype, OpCall, Tensor};
use steptime_step::{Call, NewOp, OpId, Patch, StepIr, TensorId};

use super::lists::{FoundOptimizer, Lists};
use super::roles::Role;

/// Roles of the op's lists, in order.
fn roles(rule: Rule) -> &'static [Role] {
    match rule {
        Rule::Adam { .. } | Rule::AdamW { .. } => {
            &[Role::Parameter, Role::Gradient, Role::First, Role::Second, Role::Largest]
        }
        _ => &[Role::Parameter, Role::Gradient, Role::First],
    }
}

/// Reads an update in the fused form.
pub(super) fn read(step: &StepIr, ops: &[OpId], rules: &[Rule]) -> Option<FoundOptimizer> {
    let rule = rules.first()?;
    let mut groups = Vec::new();
    let mut optimizer = None;
    for op in ops.iter().filter(|&&op| step.ops[op].name.starts_with("aten::_fused_")) {
        let call = step.ops[*op].call.as_deref()?;
        let list = |(&role, arg): (&Role, &Arg<TensorId>)| match arg {
            Arg::Tensors(list) if !list.is_empty() => Some((role, list.clone())),
            _ => None,
        };
        let lists: Lists = roles(*rule).iter().zip(&call.inputs).filter_map(list).collect();
        let on = |at: usize| match call.inputs.get(at) {
            Some(Arg::Float(number)) => *number != 0.0,
            Some(Arg::Bool(on)) => *on,
            _ => false,
        };
        let (rule, weight_decay) = match *rule {
            Rule::Sgd { .. } => {
                (Rule::Sgd { momentum: lists.contains_key(&Role::First), nesterov: on(7) }, on(3))
            }
            Rule::Adam { .. } => (Rule::Adam { amsgrad: lists.contains_key(&Role::Largest) }, on(9)),
            Rule::AdamW { .. } => (Rule::AdamW { amsgrad: lists.contains_key(&Role::Largest) }, on(9)),
            other => (other, on(6)),
        };
        optimizer = Some(Optimizer { rule, weight_decay, form: Form::Fused });
        groups.push(lists);
    }
    Some(FoundOptimizer { optimizer: optimizer?, groups })
}

/// The op, after one that increments step counts on the device.
pub(super) fn write(step: &StepIr, patch: &mut Patch, optimizer: &Optimizer, lists: &Lists) -> Vec<NewOp> {
    let parameters = lists.get(&Role::Parameter).cloned().unwrap_or_default();
    let described = |&tensor: &TensorId| {
        Some(Parameter { tensor: step.tensors.get(tensor)?.value.clone(), gradient: Gradient::Dense })
    };
    let described: Vec<Parameter> = parameters.iter().filter_map(described).collect();
    let calls = optimizer::step(optimizer, &described);
    let count = |_| patch.tensor(step, Tensor::contiguous(&[], Dtype::F32));
    let counts: Vec<TensorId> = parameters.iter().map(count).collect();
    let roles = roles(optimizer.rule);
    let op = |call: &OpCall| {
        let updates = call.name.contains("_fused_");
        let arg = |(at, arg): (usize, &Arg)| match (arg, roles.get(at).filter(|_| updates)) {
            (Arg::Tensors(list), _) if list.is_empty() => Arg::Tensors(Vec::new()),
            (Arg::Tensors(_), Some(role)) => Arg::Tensors(lists.get(role).cloned().unwrap_or_default()),
            (Arg::Tensors(_), None) => Arg::Tensors(counts.clone()),
            (Arg::Int(number), _) => Arg::Int(*number),
            _ => Arg::None,
        };
        let inputs = call.inputs.iter().enumerate().map(arg).collect();
        NewOp::new(&call.name, Call { inputs, outputs: Vec::new(), settings: call.settings })
    };
    calls.iter().map(op).collect()
}
