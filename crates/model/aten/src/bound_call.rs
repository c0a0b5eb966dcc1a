//! A call whose arguments have names: those that the schema of its op gives them.

use std::ops::Deref;

use smallvec::SmallVec;

use crate::call::{Arg, OpCall, Tensor};
use crate::schema::Signature;

/// A shape rule: what a call gives. `None` where the arguments do not tell.
pub type ShapeRule = fn(&BoundCall<'_>) -> Option<Vec<Arg>>;

/// A call together with the names of its arguments, as the rules of an [`OpDef`](crate::OpDef) see it.
///
/// An argument that the call leaves out is absent, like one of another kind than asked for. A name that the op does not
/// have is an error of the program: builds with debug assertions panic, others answer as if the argument were absent.
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

    /// Where an argument stands.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        let position = self.arguments.position(name);
        if cfg!(any(test, debug_assertions)) {
            assert!(position.is_some(), "{} has no argument {name:?}", self.call.name);
        }
        position
    }

    /// An argument.
    #[must_use]
    pub fn arg(&self, name: &str) -> Option<&'a Arg> {
        self.call.inputs.get(self.position(name)?)
    }

    /// A copy of an argument; [`Arg::None`] where it is absent.
    #[must_use]
    pub fn given(&self, name: &str) -> Arg {
        self.arg(name).cloned().unwrap_or_default()
    }

    /// The tensor of an argument: itself, or the first of a list.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&'a Tensor> {
        self.call.tensor_at(self.position(name)?)
    }

    /// All tensors of an argument.
    #[must_use]
    pub fn tensors(&self, name: &str) -> &'a [Tensor] {
        self.position(name).map_or(&[], |at| self.call.tensors_at(at))
    }

    /// The whole number of an argument; a truth value counts as 0 or 1.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        self.call.int_at(self.position(name)?)
    }

    /// The number of an argument.
    #[must_use]
    pub fn float(&self, name: &str) -> Option<f64> {
        self.call.float_at(self.position(name)?)
    }

    /// The truth value of an argument.
    #[must_use]
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.call.flag_at(self.position(name)?)
    }

    /// The whole numbers of an argument; a single one is a list of one.
    #[must_use]
    pub fn ints(&self, name: &str) -> Option<SmallVec<[i64; 4]>> {
        self.call.ints_at(self.position(name)?)
    }

    /// What the call gives: as recorded, else by the op's shape rule.
    #[must_use]
    pub fn results(&self) -> Option<Vec<Arg>> {
        if self.call.outputs.is_empty() { self.shape?(self) } else { Some(self.call.outputs.clone()) }
    }
}
