//! What is known of one op.

use crate::bound_call::{BoundCall, ShapeRule};
use crate::call::OpCall;
use crate::kernel::KernelCall;

/// A rule for what a call launches by itself. `None` where the arguments are not those that the rule expects.
pub type LowerRule = fn(&BoundCall<'_>) -> Option<Lowering>;
/// A rule for the calls that follow from a call.
pub type CallRule = fn(&BoundCall<'_>) -> Vec<OpCall>;

/// What is known of an op.
#[derive(Debug, Clone, Copy)]
pub struct OpDef {
    /// Its names: an overload, in place or with `out`, is the same op.
    pub names: &'static [&'static str],
    /// What a call launches by itself.
    pub lower: LowerRule,
    /// What a call gives; `None` without a rule.
    pub outputs: Option<ShapeRule>,
    /// The ops that a call on the GPU calls in turn, in their order.
    pub expand: Option<CallRule>,
    /// The ops that autograd calls for a call's gradients, in their order.
    pub backward: Option<CallRule>,
    /// The names of its arguments, where PyTorch's schemas do not have the op.
    pub arguments: &'static [&'static str],
    /// The overload whose places count where an argument stands at different places in several.
    pub overload: &'static str,
}

/// What a call launches by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Lowering {
    /// Work on the device.
    Kernel(KernelCall),
    /// Nothing: a view, metadata, no element, or no tensor on the device.
    Nothing,
    /// Nothing by itself; its child ops may.
    Children,
    /// Work of an op that is not known, or whose arguments are not: its bytes only.
    Unknown(KernelCall),
}

impl OpDef {
    /// An op that launches kernels itself.
    #[must_use]
    pub const fn leaf(names: &'static [&'static str], lower: LowerRule) -> OpDef {
        OpDef { names, lower, outputs: None, expand: None, backward: None, arguments: &[], overload: "" }
    }

    /// An op that calls others.
    #[must_use]
    pub const fn composite(names: &'static [&'static str]) -> OpDef {
        OpDef::leaf(names, |_| Some(Lowering::Children))
    }

    /// An op that never launches anything: a view, or metadata.
    #[must_use]
    pub const fn nothing(names: &'static [&'static str]) -> OpDef {
        OpDef::leaf(names, |_| Some(Lowering::Nothing))
    }

    /// With a shape rule.
    #[must_use]
    pub const fn outputs(mut self, rule: ShapeRule) -> OpDef {
        self.outputs = Some(rule);
        self
    }

    /// With the ops it calls.
    #[must_use]
    pub const fn expand(mut self, rule: CallRule) -> OpDef {
        self.expand = Some(rule);
        self
    }

    /// With the ops of its gradients.
    #[must_use]
    pub const fn backward(mut self, rule: CallRule) -> OpDef {
        self.backward = Some(rule);
        self
    }

    /// With names for its arguments, in their order.
    #[must_use]
    pub const fn arguments(mut self, names: &'static [&'static str]) -> OpDef {
        self.arguments = names;
        self
    }

    /// With the overload whose places count.
    #[must_use]
    pub const fn overload(mut self, name: &'static str) -> OpDef {
        self.overload = name;
        self
    }
}

impl Lowering {
    /// The work on the device, of an unknown op too.
    #[must_use]
    pub fn kernel(&self) -> Option<&KernelCall> {
        match self {
            Lowering::Kernel(call) | Lowering::Unknown(call) => Some(call),
            Lowering::Nothing | Lowering::Children => None,
        }
    }
}
