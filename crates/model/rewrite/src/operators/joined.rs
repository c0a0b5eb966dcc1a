//! What becomes of the results of lookups.

use steptime_aten::Arg;
use steptime_step::{OpId, Step, TensorId, Uses};

use super::lookups::Lookup;
use super::trained::Trained;

/// What becomes of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// They stand side by side in the list of a `cat`, from this place on.
    Cat(OpId, usize),
    /// They are all that a `stack` takes; of one, its place.
    Stack(OpId, usize),
    /// There is one.
    Alone,
}

/// What becomes of a result: one `cat` or `stack` along the columns takes it, and gives its gradient.
pub(super) fn joined(step: &Step, uses: &Uses, lookup: &Lookup, trained: Option<&Trained>) -> Joined {
    let users = uses.consumers(lookup.result).iter().filter(|&&op| !step.is_within(op, lookup.op));
    let mut users: Vec<OpId> = users.map(|&op| step.outermost(op)).collect();
    users.dedup();
    let [op] = users[..] else { return Joined::Alone };
    let Some(call) = &step.ops[op].call else { return Joined::Alone };
    let (Some(Arg::Tensors(list)), Some(Arg::Int(dim))) = (call.inputs.first(), call.inputs.get(1)) else {
        return Joined::Alone;
    };
    let mut places = list.iter().enumerate().filter(|&(_, &tensor)| tensor == lookup.result);
    let (Some((at, _)), None) = (places.next(), places.next()) else { return Joined::Alone };
    let shape = &step.tensors[lookup.result].value.shape;
    let (joined, function) = match (&*step.ops[op].name, &shape[..], dim) {
        ("aten::cat", [_, _], 1 | -1) | ("aten::cat", [_, 1, _], 1 | -2) => {
            (Joined::Cat(op, at), "CatBackward")
        }
        ("aten::stack", [_, _], 1 | -2) => (Joined::Stack(op, at), "StackBackward"),
        _ => return Joined::Alone,
    };
    let gives = |trained: &Trained| {
        let maker = uses.producer(trained.gradient);
        maker.is_some_and(|maker| step.around(maker).any(|op| step.ops[op].name.contains(function)))
    };
    if trained.is_none_or(gives) { joined } else { Joined::Alone }
}

/// The list that a `cat` or a `stack` takes.
pub(super) fn list(step: &Step, op: OpId) -> Option<&[TensorId]> {
    match step.ops[op].call.as_deref()?.inputs.first()? {
        Arg::Tensors(list) => Some(list),
        _ => None,
    }
}
