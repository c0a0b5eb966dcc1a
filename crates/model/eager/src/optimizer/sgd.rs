//! Stochastic gradient descent, without momentum.

use super::Form;
use super::state::{learnt, over};
use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::optimizer::rows;
use crate::tensor::Tensor;

const RATE: Input<'static> = Input::Float(-0.01);

/// Updates all parameters.
pub(super) fn step(e: &mut Eager, form: Form) {
    let (parameters, grads) = learnt(e);
    let sparse = grads.iter().any(|grad| grad.sparse.is_some());
    let (none, no): (&[Tensor], _) = (&[], Input::Bool(false));
    match form {
        Form::Foreach if !sparse => {
            over(e, "aten::_foreach_add_.List", inputs![&parameters, &grads, RATE]);
        }
        Form::Fused => {
            let (zero, rate) = (Input::Float(0.0), Input::Float(0.01));
            let list = inputs![
                &parameters,
                &grads,
                none,
                zero,
                zero,
                rate,
                zero,
                no,
                no,
                Input::Bool(true),
                Input::None,
                Input::None
            ];
            over(e, "aten::_fused_sgd_", list);
        }
        // Lists do not support sparse gradients.
        Form::Loop | Form::Foreach => {
            for (parameter, grad) in parameters.iter().zip(&grads) {
                rows::add_(e, parameter, grad, RATE);
            }
        }
    }
}
