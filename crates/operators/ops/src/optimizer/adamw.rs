//! AdamW, as `torch.optim.AdamW`.

use super::adam::{Step, moments};
use super::rule::private::Formula;
use super::{Adam, OptimizerError, Rule};
use crate::simd::Simd;

/// [`Adam`] whose weight decay shrinks the parameter itself, `p *= 1 - lr weight_decay`, and does not change the
/// gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamW(
    /// The settings.
    pub Adam,
);

impl AdamW {
    /// PyTorch's settings: a weight decay of 0.01.
    #[must_use]
    pub fn new(lr: f64) -> AdamW {
        AdamW(Adam { weight_decay: 0.01, ..Adam::new(lr) })
    }
}

impl Rule for AdamW {
    const NAME: &'static str = "AdamW";

    fn states(&self) -> usize {
        2
    }

    fn check(&self) -> Result<(), OptimizerError> {
        self.0.check_as(Self::NAME)
    }

    fn reference(&self, step: u64, parameter: &mut f64, gradient: f64, state: &mut [f64]) {
        *parameter *= 1.0 - self.0.lr * self.0.weight_decay;
        self.0.reference_step(step, parameter, gradient, state);
    }
}

impl Formula for AdamW {
    type Step = Step;

    fn step(&self, step: u64) -> Step {
        Step { decay: 0.0, keep: (1.0 - self.0.lr * self.0.weight_decay) as f32, ..self.0.step(step) }
    }

    #[inline(always)]
    fn update<S: Simd>(s: S, step: &Step, p: &mut [f32], g: &[f32], state: [&mut [f32]; 2]) {
        moments(s, step, p, g, state);
    }
}
