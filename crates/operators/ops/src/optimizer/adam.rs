//! Adam, as `torch.optim.Adam`.

use super::error::{check_positive, check_share};
use super::rule::private::Formula;
use super::{OptimizerError, Rule};
use crate::simd::{Simd, update};

/// Steps along a running mean, over the root of a running mean square: `g += weight_decay p;
/// m += (1 - beta1) (g - m); v = beta2 v + (1 - beta2) g^2;
/// p -= lr / (1 - beta1^step) m / (sqrt v / sqrt(1 - beta2^step) + eps)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Share of the mean that is kept.
    pub beta1: f64,
    /// Share of the mean square that is kept.
    pub beta2: f64,
    /// Keeps the denominator off zero.
    pub eps: f64,
    /// Factor of the parameter that is added to the gradient.
    pub weight_decay: f64,
}

impl Adam {
    /// PyTorch's settings, without decay.
    #[must_use]
    pub fn new(lr: f64) -> Adam {
        Adam { lr, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0 }
    }

    /// Checks that the settings are in their ranges; errors name `rule`.
    pub(super) fn check_as(&self, rule: &'static str) -> Result<(), OptimizerError> {
        check_positive(rule, "lr", self.lr)?;
        check_share(rule, "beta1", self.beta1)?;
        check_share(rule, "beta2", self.beta2)?;
        check_positive(rule, "eps", self.eps)?;
        check_positive(rule, "weight_decay", self.weight_decay)
    }

    /// `lr / (1 - beta1^step)` and `sqrt(1 - beta2^step)`.
    fn corrections(&self, step: u64) -> (f64, f64) {
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        (self.lr / (1.0 - self.beta1.powi(step)), (1.0 - self.beta2.powi(step)).sqrt())
    }

    /// Updates both moments and the parameter, after decay was applied.
    pub(super) fn reference_step(&self, step: u64, parameter: &mut f64, gradient: f64, state: &mut [f64]) {
        let (rate, root) = self.corrections(step);
        state[0] += (1.0 - self.beta1) * (gradient - state[0]);
        state[1] = self.beta2 * state[1] + (1.0 - self.beta2) * gradient * gradient;
        *parameter -= rate * state[0] / (state[1].sqrt() / root + self.eps);
    }
}

impl Rule for Adam {
    const NAME: &'static str = "Adam";

    fn states(&self) -> usize {
        2
    }

    fn check(&self) -> Result<(), OptimizerError> {
        self.check_as(Self::NAME)
    }

    fn reference(&self, step: u64, parameter: &mut f64, gradient: f64, state: &mut [f64]) {
        let gradient = gradient + self.weight_decay * *parameter;
        self.reference_step(step, parameter, gradient, state);
    }
}

/// The settings in single precision.
#[derive(Clone, Copy)]
pub struct Step {
    pub(super) rate: f32,
    pub(super) root: f32,
    pub(super) eps: f32,
    pub(super) take1: f32,
    pub(super) keep2: f32,
    pub(super) take2: f32,
    /// Factor of the parameter that is added to the gradient.
    pub(super) decay: f32,
    /// Share of the parameter that is kept.
    pub(super) keep: f32,
}

impl Formula for Adam {
    type Step = Step;

    fn step(&self, step: u64) -> Step {
        let (rate, root) = self.corrections(step);
        Step {
            rate: rate as f32,
            root: root as f32,
            eps: self.eps as f32,
            take1: (1.0 - self.beta1) as f32,
            keep2: self.beta2 as f32,
            take2: (1.0 - self.beta2) as f32,
            decay: self.weight_decay as f32,
            keep: 1.0,
        }
    }

    #[inline(always)]
    fn update<S: Simd>(s: S, step: &Step, p: &mut [f32], g: &[f32], state: [&mut [f32]; 2]) {
        moments(s, step, p, g, state);
    }
}

/// Applies the step. Without decay its operand is unchanged.
#[inline(always)]
pub(super) fn moments<S: Simd>(s: S, step: &Step, p: &mut [f32], g: &[f32], [m, v]: [&mut [f32]; 2]) {
    let (rate, root, eps) = (s.splat(step.rate), s.splat(step.root), s.splat(step.eps));
    let (take1, keep2, take2) = (s.splat(step.take1), s.splat(step.keep2), s.splat(step.take2));
    let (decay, keep) = (s.splat(step.decay), s.splat(step.keep));
    update!(s, [p, m, v], g, {
        let g = s.add(g, s.mul(decay, p));
        let m = s.add(m, s.mul(take1, s.sub(g, m)));
        let v = s.add(s.mul(keep2, v), s.mul(take2, s.mul(g, g)));
        let denominator = s.add(s.div(s.sqrt(v), root), eps);
        [s.sub(s.mul(p, keep), s.mul(rate, s.div(m, denominator))), m, v]
    });
}
