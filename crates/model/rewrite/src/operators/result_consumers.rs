//! Consumers of the results of lookups.

use steptime_aten::Arg;
use steptime_step::{OpId, StepIr, TensorId, Uses};

use super::lookups::Lookup;
use super::table_training::LookupBackward;

/// Use of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultUse {
    /// Results are consecutive in the list of a `cat`, from this position on.
    Cat(OpId, usize),
    /// Results are all inputs of a `stack`; for a single one, its position.
    Stack(OpId, usize),
    /// A single result.
    Alone,
}

/// Use of a result: one `cat` or `stack` along the columns takes it, and computes its gradient.
pub(super) fn joined(
    step: &StepIr,
    uses: &Uses,
    lookup: &Lookup,
    trained: Option<&LookupBackward>,
) -> ResultUse {
    let users = uses.consumers(lookup.result).iter().filter(|&&op| !step.is_within(op, lookup.op));
    let mut users: Vec<OpId> = users.map(|&op| step.outermost(op)).collect();
    users.dedup();
    let [op] = users[..] else { return ResultUse::Alone };
    let Some(call) = &step.ops[op].call else { return ResultUse::Alone };
    let (Some(Arg::Tensors(list)), Some(Arg::Int(dim))) = (call.inputs.first(), call.inputs.get(1)) else {
        return ResultUse::Alone;
    };
    let mut places = list.iter().enumerate().filter(|&(_, &tensor)| tensor == lookup.result);
    let (Some((at, _)), None) = (places.next(), places.next()) else { return ResultUse::Alone };
    let shape = &step.tensors[lookup.result].value.shape;
    let (joined, function) = match (&*step.ops[op].name, &shape[..], dim) {
        ("aten::cat", [_, _], 1 | -1) | ("aten::cat", [_, 1, _], 1 | -2) => {
            (ResultUse::Cat(op, at), "CatBackward")
        }
        ("aten::stack", [_, _], 1 | -2) => (ResultUse::Stack(op, at), "StackBackward"),
        _ => return ResultUse::Alone,
    };
    let gives = |trained: &LookupBackward| {
        let maker = uses.producer(trained.gradient);
        maker.is_some_and(|maker| step.around(maker).any(|op| step.ops[op].name.contains(function)))
    };
    if trained.is_none_or(gives) { joined } else { ResultUse::Alone }
}

/// The list that a `cat` or a `stack` takes.
pub(super) fn list(step: &StepIr, op: OpId) -> Option<&[TensorId]> {
    match step.ops[op].call.as_deref()?.inputs.first()? {
        Arg::Tensors(list) => Some(list),
        _ => None,
    }
}
