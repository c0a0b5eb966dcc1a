//! Adam, and AdamW, which decays weights first.

use super::Form;
use super::state::{State, count_all, fresh_over, learnt, number, over, read};
use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::tensor::Tensor;

const NUMBER: Input<'static> = Input::Float(0.1);

/// Updates all parameters.
pub(super) fn step(e: &mut Eager, form: Form, decay: bool, state: &State) {
    match form {
        Form::Foreach => foreach(e, decay, state),
        Form::Fused => fused(e, decay, state),
        Form::Loop => one_by_one(e, decay, state),
    }
}

fn foreach(e: &mut Eager, decay: bool, state: &State) {
    let (parameters, grads) = learnt(e);
    let [first, second] = [&state.moments[0], &state.moments[1]];
    let numbers = vec![0.1; parameters.len()];
    count_all(e, &state.steps);
    if decay {
        over(e, "aten::_foreach_mul_.Scalar", inputs![&parameters, NUMBER]);
    }
    over(e, "aten::_foreach_lerp_.Scalar", inputs![first, &grads, NUMBER]);
    over(e, "aten::_foreach_mul_.Scalar", inputs![second, NUMBER]);
    over(e, "aten::_foreach_addcmul_.Scalar", inputs![second, &grads, &grads, NUMBER]);
    for step in state.steps.iter().chain(&state.steps) {
        read(e, step);
    }
    let root = fresh_over(e, "aten::_foreach_sqrt", second, inputs![second]);
    over(e, "aten::_foreach_div_.ScalarList", inputs![&root, &numbers[..]]);
    over(e, "aten::_foreach_add_.Scalar", inputs![&root, NUMBER]);
    over(e, "aten::_foreach_addcdiv_.ScalarList", inputs![&parameters, first, &root, &numbers[..]]);
}

fn fused(e: &mut Eager, decay: bool, state: &State) {
    let (parameters, grads) = learnt(e);
    let none: &[Tensor] = &[];
    over(e, "aten::_foreach_add_.Scalar", inputs![&state.steps, Input::Int(1)]);
    let op = if decay { "aten::_fused_adamw_" } else { "aten::_fused_adam_" };
    let (no, absent) = (Input::Bool(false), Input::None);
    let list = inputs![
        &parameters,
        &grads,
        &state.moments[0],
        &state.moments[1],
        none,
        &state.steps,
        NUMBER,
        NUMBER,
        NUMBER,
        Input::Float(if decay { 0.1 } else { 0.0 }),
        NUMBER,
        no,
        no,
        absent,
        absent
    ];
    over(e, op, list);
}

fn one_by_one(e: &mut Eager, decay: bool, state: &State) {
    let (parameters, grads) = learnt(e);
    for (at, (parameter, grad)) in parameters.iter().zip(&grads).enumerate() {
        let [first, second, step] = [&state.moments[0][at], &state.moments[1][at], &state.steps[at]];
        let value = &number(e);
        let mut change = |op: &str, list: &[Input<'_>], to: &Tensor| {
            e.op(op, list, |_| to.clone());
        };
        change("aten::add_.Tensor", inputs![step, value, Input::Int(1)], step);
        if decay {
            change("aten::mul_.Tensor", inputs![parameter, value], parameter);
        }
        change("aten::lerp_.Scalar", inputs![first, grad, NUMBER], first);
        change("aten::mul_.Tensor", inputs![second, value], second);
        change("aten::addcmul_", inputs![second, grad, grad, NUMBER], second);
        read(e, step);
        let root = e.op("aten::sqrt", inputs![second], |e| e.like(second));
        let root = e.op("aten::div.Tensor", inputs![&root, value], |e| e.like(&root));
        e.op("aten::add_.Tensor", inputs![&root, value, Input::Int(1)], |_| root.clone());
        e.op("aten::addcdiv_", inputs![parameter, first, &root, NUMBER], |_| parameter.clone());
    }
}
