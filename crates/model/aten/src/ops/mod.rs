//! What is known of each op: one file an op, or a few that are close kin.
//!
//! A file lists its ops as `pub static OPS: &[OpDef]`; [`crate::registry`] lists the files.

pub mod activation;
pub mod activation_layer;
pub mod alias;
pub mod attention;
pub mod attention_layer;
pub mod batch_norm;
pub mod binary;
pub mod compare;
pub mod concat;
pub mod convolution;
pub mod convolution_backward;
pub mod convolution_layer;
pub mod copy;
pub mod embedding;
pub mod embedding_bag;
pub mod fill;
pub mod fused_bags;
pub mod gather;
pub mod gemm;
pub mod gradients;
pub mod index;
pub mod index_put;
pub mod interaction;
pub mod layers;
pub mod linear;
pub mod loss;
pub mod loss_layer;
pub mod multi_tensor;
pub mod norm;
pub mod norm_layer;
pub mod pointwise;
pub mod pool;
pub mod pool_layer;
pub mod random;
pub mod rearrange;
pub mod reduce;
pub mod resample;
pub mod reshape;
pub mod rnn;
pub mod scan;
pub mod scatter;
pub mod softmax;
pub mod sort;
pub mod sparse;
pub mod table_batched;
pub mod ternary;
pub mod tiled_gather;
pub mod unary;
pub mod view_gradients;
pub mod views;
use crate::call::{Arg, OpCall};
use crate::kernel::KernelCall;

/// Says what a call gives.
pub type ShapeRule = fn(&OpCall) -> Option<Vec<Arg>>;
/// Says which calls follow from a call.
pub type CallRule = fn(&OpCall) -> Vec<OpCall>;

/// What is known of an op.
#[derive(Debug, Clone, Copy)]
pub struct OpDef {
    /// Its names: an overload, in place or with `out`, is the same op.
    pub names: &'static [&'static str],
    /// What a call launches by itself.
    pub lower: fn(&OpCall) -> Lowered,
    /// The shape rule: what a call gives. `None` where there is no rule, or the arguments do not tell.
    pub outputs: Option<ShapeRule>,
    /// The ops that a call on the GPU calls in turn, in their order.
    pub expand: Option<CallRule>,
    /// The ops that autograd calls for a call's gradients, in their order.
    pub backward: Option<CallRule>,
}

/// What a call launches by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Lowered {
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
    pub const fn leaf(names: &'static [&'static str], lower: fn(&OpCall) -> Lowered) -> OpDef {
        OpDef { names, lower, outputs: None, expand: None, backward: None }
    }

    /// An op that calls others.
    #[must_use]
    pub const fn composite(names: &'static [&'static str]) -> OpDef {
        OpDef::leaf(names, |_| Lowered::Children)
    }

    /// An op that never launches anything: a view, or metadata.
    #[must_use]
    pub const fn nothing(names: &'static [&'static str]) -> OpDef {
        OpDef::leaf(names, |_| Lowered::Nothing)
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
}

impl Lowered {
    /// The work on the device, of an unknown op too.
    #[must_use]
    pub fn kernel(&self) -> Option<&KernelCall> {
        match self {
            Lowered::Kernel(call) | Lowered::Unknown(call) => Some(call),
            Lowered::Nothing | Lowered::Children => None,
        }
    }
}
