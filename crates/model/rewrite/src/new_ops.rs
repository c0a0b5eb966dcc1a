//! Ops that rules insert.

use steptime_aten::Arg;
use steptime_graph::names::{ACCUMULATE_GRAD, EventName};
use steptime_step::{Call, NewOp, OpId, StepIr, TensorId};

/// An op with one output tensor.
pub(crate) fn op(name: &str, inputs: Vec<Arg<TensorId>>, output: TensorId) -> NewOp {
    NewOp::new(name, Call { inputs, outputs: vec![Arg::Tensor(output)], ..Call::default() })
}

/// A function of the backward pass, as run by the autograd engine.
pub(crate) fn function(name: &str, takes: &[TensorId], inside: Vec<NewOp>) -> NewOp {
    let inputs = takes.iter().map(|&tensor| Arg::Tensor(tensor)).collect();
    let own = NewOp::new(name, Call { inputs, ..Call::default() }).with(inside);
    NewOp::around(&EventName::engine(name), vec![own])
}

/// A list of integers.
pub(crate) fn ints(sizes: &[i64]) -> Arg<TensorId> {
    Arg::Ints(sizes.iter().copied().collect())
}

/// The op that accumulates the gradient computed by a function into that of its parameter; it directly follows the function.
pub(crate) fn accumulates(step: &StepIr, function: OpId) -> Option<OpId> {
    let row = &step.ops[function];
    let siblings = match row.parent {
        Some(parent) => &step.ops[parent].children,
        None => &step.threads[row.thread],
    };
    let at = siblings.iter().position(|&sibling| sibling == function)?;
    siblings.get(at + 1).copied().filter(|&next| step.ops[next].name == EventName::engine(ACCUMULATE_GRAD))
}
