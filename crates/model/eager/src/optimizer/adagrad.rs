//! Adagrad.

use super::Form;
use super::state::{State, count_all, fresh_over, learnt, number, over, read};
use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::tensor::Tensor;

const NUMBER: Input<'static> = Input::Float(0.1);
/// Neither the rate nor the weights decay.
const NONE: Input<'static> = Input::Float(0.0);

/// Updates all parameters, none of which has a sparse gradient.
pub(super) fn step(e: &mut Eager, form: Form, state: &State) {
    let (parameters, grads) = learnt(e);
    let sums = &state.moments[0];
    match form {
        Form::Loop => {
            for (at, (parameter, grad)) in parameters.iter().zip(&grads).enumerate() {
                update_one(e, parameter, grad, &sums[at], &state.steps[at]);
            }
        }
        Form::Foreach => {
            let numbers = vec![0.1; parameters.len()];
            count_all(e, &state.steps);
            for step in &state.steps {
                read(e, step);
            }
            over(e, "aten::_foreach_addcmul_.Scalar", inputs![sums, &grads, &grads, NUMBER]);
            let root = fresh_over(e, "aten::_foreach_sqrt", sums, inputs![sums]);
            over(e, "aten::_foreach_add_.Scalar", inputs![&root, NUMBER]);
            let list = inputs![&grads, &numbers[..]];
            let scaled = fresh_over(e, "aten::_foreach_mul.ScalarList", &grads, list);
            over(e, "aten::_foreach_addcdiv_.Scalar", inputs![&parameters, &scaled, &root, Input::Int(1)]);
        }
        Form::Fused => {
            over(e, "aten::_foreach_add_.Scalar", inputs![&state.steps, Input::Int(1)]);
            let list = inputs![
                &parameters,
                &grads,
                sums,
                &state.steps,
                NUMBER,
                NONE,
                NONE,
                NUMBER,
                false,
                Input::None,
                Input::None
            ];
            over(e, "aten::_fused_adagrad_", list);
        }
    }
}

fn update_one(e: &mut Eager, parameter: &Tensor, grad: &Tensor, sum: &Tensor, step: &Tensor) {
    let one = number(e);
    e.op("aten::add_.Tensor", inputs![step, &one, Input::Int(1)], |_| step.clone());
    read(e, step);
    e.op("aten::addcmul_", inputs![sum, grad, grad, NUMBER], |_| sum.clone());
    let root = e.op("aten::sqrt", inputs![sum], |e| e.like(sum));
    e.op("aten::add_.Tensor", inputs![&root, &one, Input::Int(1)], |_| root.clone());
    e.op("aten::addcdiv_", inputs![parameter, grad, &root, NUMBER], |_| parameter.clone());
}
