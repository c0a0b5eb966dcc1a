//! Call whose arguments have the names of its op's schema.

use std::ops::Deref;

use smallvec::SmallVec;

use crate::call::{Arg, OpCall, Tensor};
use crate::schema::Signature;

/// Shape rule: returns the results of a call. `None` if the arguments do not determine them.
pub type ShapeRule = fn(&BoundCall<'_>) -> Option<Vec<Arg>>;

/// Call with the names of its arguments, as passed to the rules of an [`OpDef`](crate::OpDef).
///
/// An argument that the call leaves out is absent, and so is one of another kind than requested. A name that the op does not
/// have is an error of the program: builds with debug assertions panic, others treat the argument as absent.
#[derive(Debug, Clone, Copy)]
pub struct BoundCall<'a> {
    call: &'a OpCall,
    arguments: &'a Signature,
    shape: Option<ShapeRule>,
}

impl Deref for BoundCall<'_> {
    type Target = OpCall;

    fn deref(&self) -> &OpCall {
        self.call
    }
}

impl<'a> BoundCall<'a> {
    pub(crate) const fn new(
        call: &'a OpCall,
        arguments: &'a Signature,
        shape: Option<ShapeRule>,
    ) -> BoundCall<'a> {
        BoundCall { call, arguments, shape }
    }

    /// Whether the op has an argument of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.arguments.position(name).is_some()
    }

    /// Returns the position of an argument.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        let position = self.arguments.position(name);
        if cfg!(any(test, debug_assertions)) {
            assert!(position.is_some(), "{} has no argument {name:?}", self.call.name);
        }
        position
    }

    /// Returns an argument.
    #[must_use]
    pub fn arg(&self, name: &str) -> Option<&'a Arg> {
        self.call.inputs.get(self.position(name)?)
    }

    /// Returns a copy of an argument; [`Arg::None`] if it is absent.
    #[must_use]
    pub fn arg_or_none(&self, name: &str) -> Arg {
        self.arg(name).cloned().unwrap_or_default()
    }

    /// Returns the tensor of an argument: itself, or the first of a list.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&'a Tensor> {
        self.call.tensor_at(self.position(name)?)
    }

    /// Returns all tensors of an argument.
    #[must_use]
    pub fn tensors(&self, name: &str) -> &'a [Tensor] {
        self.position(name).map_or(&[], |at| self.call.tensors_at(at))
    }

    /// Returns the whole number of an argument; a truth value counts as 0 or 1.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        self.call.int_at(self.position(name)?)
    }

    /// Returns the number of an argument.
    #[must_use]
    pub fn float(&self, name: &str) -> Option<f64> {
        self.call.float_at(self.position(name)?)
    }

    /// Returns the truth value of an argument.
    #[must_use]
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.call.flag_at(self.position(name)?)
    }

    /// Returns the whole numbers of an argument; a single number becomes a list of one.
    #[must_use]
    pub fn ints(&self, name: &str) -> Option<SmallVec<[i64; 4]>> {
        self.call.ints_at(self.position(name)?)
    }

    /// Returns the results of the call: as recorded, otherwise by the op's shape rule.
    #[must_use]
    pub fn results(&self) -> Option<Vec<Arg>> {
        if self.call.outputs.is_empty() { self.shape?(self) } else { Some(self.call.outputs.clone()) }
    }
}
