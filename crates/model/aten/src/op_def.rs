//! Definition of an op.

use crate::bound_call::{BoundCall, ShapeRule};
use crate::call::OpCall;
use crate::kernel::KernelCall;

/// Rule for the launches of a call itself. `None` if the arguments are not those that the rule expects.
pub type LowerRule = fn(&BoundCall<'_>) -> Option<Lowering>;
/// Rule for the calls that follow from a call.
pub type CallRule = fn(&BoundCall<'_>) -> Vec<OpCall>;

/// Definition of an op.
#[derive(Debug, Clone, Copy)]
pub struct OpDef {
    /// Names of the op: an overload, in place or with `out`, is the same op.
    pub names: &'static [&'static str],
    /// Rule for the launches of a call itself.
    pub lower: LowerRule,
    /// Rule for the results of a call; `None` without a rule.
    pub outputs: Option<ShapeRule>,
    /// Rule for the ops that a call on the GPU calls, in order.
    pub expand: Option<CallRule>,
    /// Rule for the ops that autograd calls for a call's gradients, in order.
    pub backward: Option<CallRule>,
    /// Names of the arguments, if PyTorch's schemas do not have the op.
    pub arguments: &'static [&'static str],
    /// Overload whose positions are used if an argument has different positions in several overloads.
    pub overload: &'static str,
}

/// Launches of a call itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Lowering {
    /// Device work.
    Kernel(KernelCall),
    /// No launch: a view, metadata, no elements, or no tensor on the device.
    Nothing,
    /// No own launch; its child ops may launch something.
    Children,
    /// Work of an unknown op, or of unknown arguments: only its bytes.
    Unknown(KernelCall),
}

impl OpDef {
    /// Returns an op that launches kernels itself.
    #[must_use]
    pub const fn leaf(names: &'static [&'static str], lower: LowerRule) -> OpDef {
        OpDef { names, lower, outputs: None, expand: None, backward: None, arguments: &[], overload: "" }
    }

    /// Returns an op that calls others.
    #[must_use]
    pub const fn composite(names: &'static [&'static str]) -> OpDef {
        OpDef::leaf(names, |_| Some(Lowering::Children))
    }

    /// Returns an op that never launches anything: a view, or metadata.
    #[must_use]
    pub const fn nothing(names: &'static [&'static str]) -> OpDef {
        OpDef::leaf(names, |_| Some(Lowering::Nothing))
    }

    /// Sets the shape rule.
    #[must_use]
    pub const fn outputs(mut self, rule: ShapeRule) -> OpDef {
        self.outputs = Some(rule);
        self
    }

    /// Sets the rule for the ops that it calls.
    #[must_use]
    pub const fn expand(mut self, rule: CallRule) -> OpDef {
        self.expand = Some(rule);
        self
    }

    /// Sets the rule for the ops of its gradients.
    #[must_use]
    pub const fn backward(mut self, rule: CallRule) -> OpDef {
        self.backward = Some(rule);
        self
    }

    /// Sets the names of its arguments, in order.
    #[must_use]
    pub const fn arguments(mut self, names: &'static [&'static str]) -> OpDef {
        self.arguments = names;
        self
    }

    /// Sets the overload whose positions are used.
    #[must_use]
    pub const fn overload(mut self, name: &'static str) -> OpDef {
        self.overload = name;
        self
    }
}

impl Lowering {
    /// Returns the device work, also of an unknown op.
    #[must_use]
    pub fn kernel(&self) -> Option<&KernelCall> {
        match self {
            Lowering::Kernel(call) | Lowering::Unknown(call) => Some(call),
            Lowering::Nothing | Lowering::Children => None,
        }
    }
}
