//! Optimizer states, which are kept between steps.

use steptime_aten::Dtype;

use super::{Form, Rule};
use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::recorder::code;
use crate::tensor::Tensor;

/// Lists with one tensor per parameter.
pub(super) struct State {
    /// Sums of gradients or of their squares, with the shapes of the parameters.
    pub(super) moments: Vec<Vec<Tensor>>,
    /// Step counts, in host memory except for fused forms.
    pub(super) steps: Vec<Tensor>,
}

impl State {
    pub(super) fn new(e: &mut Eager, rule: Rule, form: Form) -> State {
        let lists = rule.moments();
        let shapes: Vec<Vec<i64>> = e.parameters.iter().map(|p| p.tensor.shape.clone()).collect();
        let moments = |e: &mut Eager| shapes.iter().map(|shape| e.empty(shape, Dtype::F32)).collect();
        let moments = (0..lists).map(|_| moments(e)).collect();
        let mut count = |_| match form {
            Form::Fused => e.empty(&[], Dtype::F32),
            _ => e.host(&[], Dtype::F32),
        };
        let steps = if lists > 0 { shapes.iter().map(&mut count).collect() } else { Vec::new() };
        State { moments, steps }
    }
}

/// Parameters with gradients, and these gradients.
pub(super) fn learnt(e: &Eager) -> (Vec<Tensor>, Vec<Tensor>) {
    let all = e.parameters.iter();
    all.filter_map(|parameter| Some((parameter.tensor.clone(), parameter.grad.clone()?))).unzip()
}

/// Increments the step counts of all parameters on the host: a tensor of one is added to a list.
pub(super) fn count_all(e: &mut Eager, steps: &[Tensor]) {
    let one = e.host(&[], Dtype::F32);
    let none: &[i64] = &[];
    let cpu = Input::Device("cpu");
    e.op(
        "aten::empty.memory_format",
        inputs![none, code(Dtype::F32), Input::Int(0), cpu, false, Input::None],
        |_| one.clone(),
    );
    e.op("aten::to.device", inputs![&one, cpu, code(Dtype::F32), false, false, Input::None], |_| one.clone());
    e.op("aten::lift_fresh", inputs![&one], |_| one.clone());
    e.op("aten::detach_", inputs![&one], |e| {
        e.node("detach_", crate::recorder::OP, inputs![&one], |_| ());
        one.clone()
    });
    e.op("aten::_foreach_add_.Tensor", inputs![steps, &one, Input::Float(1.0)], |e| {
        for step in steps {
            e.op("aten::add_.Tensor", inputs![step, &one, Input::Float(1.0)], |_| step.clone());
        }
    });
}

/// A number, which Python passes to arithmetic as a tensor in host memory.
pub(super) fn number(e: &mut Eager) -> Tensor {
    e.host(&[], Dtype::F64)
}

/// Reads a step count as a number.
pub(super) fn read(e: &mut Eager, step: &Tensor) {
    let value = Input::Float(1.0);
    e.composite("aten::item", inputs![step], |e| e.op("aten::_local_scalar_dense", inputs![step], |_| value));
}

/// An op over lists that changes the first list.
pub(super) fn over(e: &mut Eager, op: &str, inputs: &[Input<'_>]) {
    e.op(op, inputs, |_| ());
}

/// An op over lists that returns a new list.
pub(super) fn fresh_over(e: &mut Eager, op: &str, like: &[Tensor], inputs: &[Input<'_>]) -> Vec<Tensor> {
    e.op(op, inputs, |e| {
        like.iter().map(|tensor| crate::ops::fill::empty_strided(e, tensor)).collect::<Vec<_>>()
    })
}
