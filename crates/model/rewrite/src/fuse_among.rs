//! Fusions of chosen ops only.

use steptime_step::{Patch, StepIr};

use crate::error::Error;
use crate::fuse_bags::FuseEmbeddingBags;
use crate::fuse_linear::FuseLinear;
use crate::fuse_pointwise::FusePointwise;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;
use crate::selection::{Among, Selection};

/// Kind of fusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fusion {
    /// Embedding bags, as by [`FuseEmbeddingBags`].
    EmbeddingBags,
    /// Chains of elementwise ops, as by [`FusePointwise`].
    Elementwise,
    /// Linear layers with their ReLU, as by [`FuseLinear`].
    Linear,
}

/// A fusion of chosen ops of the forward pass, and of the ops that compute their gradients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuseAmong {
    /// Kind of fusion.
    pub what: Fusion,
    /// The chosen ops.
    pub ops: Vec<Selection>,
}

impl FuseAmong {
    /// The rule that applies this fusion to all ops.
    fn rule(&self) -> &'static dyn Rule {
        match self.what {
            Fusion::EmbeddingBags => &FuseEmbeddingBags,
            Fusion::Elementwise => &FusePointwise,
            Fusion::Linear => &FuseLinear,
        }
    }
}

impl Rule for FuseAmong {
    fn name(&self) -> &'static str {
        self.rule().name()
    }

    fn stage(&self) -> Stage {
        self.rule().stage()
    }

    fn effort(&self) -> &'static str {
        self.rule().effort()
    }

    fn risk(&self) -> &'static str {
        self.rule().risk()
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        self.rule().doubt()
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let among = Among::chosen(&self.ops, step, facts)?;
        match self.what {
            Fusion::EmbeddingBags => FuseEmbeddingBags.among(step, facts, &among),
            Fusion::Elementwise => FusePointwise.among(step, facts, &among),
            Fusion::Linear => FuseLinear.among(step, facts, &among),
        }
    }
}
