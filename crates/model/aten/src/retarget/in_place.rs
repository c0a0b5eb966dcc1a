//! Ops of an optimizer's loop that return a new tensor, although the same op over lists writes in place.

use super::branch::Branch;
use crate::call::{Arg, Tensor};

/// Makes an op of an iteration write in place if it does so over lists: ops that take its result then take its first argument.
pub(super) fn written(optimizer: &str, turn: &mut [Branch], at: usize) {
    let (before, rest) = turn.split_at_mut(at);
    let [branch, after @ ..] = rest else { return };
    let written = match branch.name() {
        // A quotient in a loop is a new tensor; over lists the dividend already is one.
        "aten::div" => true,
        // Nesterov's gradient, to which the momentum is added.
        "aten::add" if optimizer.contains("SGD") => adds_momentum(before, branch),
        // The largest value so far is passed as the result.
        "aten::maximum" => branch.call.inputs.len() > 2,
        _ => false,
    };
    let Some(target) = branch.call.tensor_at(0).cloned().filter(|_| written) else { return };
    if branch.name() == "aten::maximum" {
        branch.call.inputs.truncate(2);
    }
    branch.call.name.push('_');
    let given =
        branch.call.outputs.first_mut().map(|given| std::mem::replace(given, Arg::Tensor(target.clone())));
    if let Some(Arg::Tensor(given)) = given {
        let taken =
            after.iter_mut().flat_map(|branch| branch.call.inputs.iter_mut().chain(&mut branch.call.outputs));
        taken
            .flat_map(Arg::tensors_mut)
            .filter(|taken| is_same(taken, &given))
            .for_each(|taken| *taken = target.clone());
    }
}

/// Whether the second argument was updated in the same iteration, as momentum is.
fn adds_momentum(before: &[Branch], branch: &Branch) -> bool {
    let Some(added) = branch.call.tensor_at(1) else { return false };
    let updates = |other: &&Branch| other.name() == "aten::mul_";
    before
        .iter()
        .filter(updates)
        .filter_map(|other| other.call.tensor_at(0))
        .any(|updated| is_same(updated, added))
}

fn is_same(a: &Tensor, b: &Tensor) -> bool {
    a.place.number().is_some() && a.place.number() == b.place.number()
}
