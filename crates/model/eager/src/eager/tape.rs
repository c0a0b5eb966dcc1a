//! The tape: backward functions of the tensors made so far.

use super::Eager;
use crate::tensor::{GradId, Tensor};

/// Computes the gradients of the arguments from that of the result; `needed` marks the needed ones.
pub(crate) type Apply = Box<dyn FnOnce(&mut Eager, &Tensor, &[bool]) -> Vec<Option<Tensor>>>;

/// Computes the gradient of the argument from those of all results.
pub(crate) type Join = Box<dyn FnOnce(&mut Eager, &[Tensor]) -> Tensor>;

/// A function of the backward pass.
pub(crate) struct GradFn {
    pub(crate) name: &'static str,
    /// Shape of the incoming gradient.
    pub(crate) shape: Vec<i64>,
    pub(crate) kind: GradKind,
}

/// Kind of a backward function.
pub(crate) enum GradKind {
    /// Computes the gradients of the arguments of its op.
    Function {
        /// Sequence number of the op.
        sequence: i64,
        apply: Option<Apply>,
        /// The next function for the gradient of each argument.
        next: Vec<Option<GradId>>,
    },
    /// Computes the gradient of the argument of an op with several results, once the gradients of all are ready.
    Join {
        /// Sequence number of the op.
        sequence: i64,
        apply: Option<Join>,
        next: GradId,
    },
    /// Passes the gradient of one result to such a function, with the index of the result.
    Part { of: GradId, place: usize },
    /// Stores the gradient with a parameter, given by its index.
    Accumulate(usize),
}

/// The functions of a step, and the next sequence number.
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
