//! The tape: what takes the gradients of the tensors made so far.

use super::Eager;
use crate::tensor::{GradId, Tensor};

/// From the gradient of a function's result to those of its arguments. `needed` says which are wanted.
pub(crate) type Apply = Box<dyn FnOnce(&mut Eager, &Tensor, &[bool]) -> Vec<Option<Tensor>>>;

/// From the gradients of all results of a function to that of its argument.
pub(crate) type Join = Box<dyn FnOnce(&mut Eager, &[Tensor]) -> Tensor>;

/// A function of the backward pass.
pub(crate) struct GradFn {
    pub(crate) name: &'static str,
    /// The shape of the gradient that it takes.
    pub(crate) shape: Vec<i64>,
    pub(crate) kind: GradKind,
}

/// What a function does with a gradient.
pub(crate) enum GradKind {
    /// Makes those of the arguments of the op that it belongs to.
    Function {
        /// Its number in the order of ops.
        sequence: i64,
        apply: Option<Apply>,
        /// Where the gradient of each argument goes.
        next: Vec<Option<GradId>>,
    },
    /// Makes that of the argument of an op with several results, once the gradients of all are there.
    Join {
        /// Its number in the order of ops.
        sequence: i64,
        apply: Option<Join>,
        next: GradId,
    },
    /// Hands it to such a function: that of one result, by its place among them.
    Part { of: GradId, place: usize },
    /// Keeps it for a parameter, by its place among them.
    Accumulate(usize),
}

/// The functions of a step, and the next number.
#[derive(Default)]
pub(crate) struct Tape {
    pub(crate) functions: Vec<GradFn>,
    pub(crate) sequence: i64,
}

impl Tape {
    pub(crate) fn push(&mut self, function: GradFn) -> GradId {
        self.functions.push(function);
        self.functions.len() - 1
    }
}
