//! Adagrad, as `torch.optim.Adagrad`.

use super::error::check_positive;
use super::rule::private::Formula;
use super::{OptimizerError, Rule};
use crate::simd::{Simd, update};

/// Steps that shrink with the sum of squared gradients: `g += weight_decay p; h += g^2; p -= lr' g / (sqrt h + eps)`,
/// where `lr' = lr / (1 + (step - 1) lr_decay)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adagrad {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the learning rate.
    pub lr_decay: f64,
    /// Factor of the parameter that is added to the gradient.
    pub weight_decay: f64,
    /// Initial value of h.
    pub initial: f64,
    /// Keeps the denominator off zero.
    pub eps: f64,
}

impl Adagrad {
    /// PyTorch's settings, without decay.
    #[must_use]
    pub fn new(lr: f64) -> Adagrad {
        Adagrad { lr, lr_decay: 0.0, weight_decay: 0.0, initial: 0.0, eps: 1e-10 }
    }

    /// The learning rate of a step.
    fn rate(&self, step: u64) -> f64 {
        self.lr / (1.0 + (step - 1) as f64 * self.lr_decay)
    }
}

impl Rule for Adagrad {
    const NAME: &'static str = "Adagrad";

    fn states(&self) -> usize {
        1
    }

    fn initial(&self) -> f32 {
        self.initial as f32
    }

    fn check(&self) -> Result<(), OptimizerError> {
        check_positive(Self::NAME, "lr", self.lr)?;
        check_positive(Self::NAME, "lr_decay", self.lr_decay)?;
        check_positive(Self::NAME, "weight_decay", self.weight_decay)?;
        check_positive(Self::NAME, "initial", self.initial)?;
        check_positive(Self::NAME, "eps", self.eps)
    }

    fn reference(&self, step: u64, parameter: &mut f64, gradient: f64, state: &mut [f64]) {
        let gradient = gradient + self.weight_decay * *parameter;
        state[0] += gradient * gradient;
        *parameter -= self.rate(step) * gradient / (state[0].sqrt() + self.eps);
    }
}

/// The settings in single precision.
#[derive(Clone, Copy)]
pub struct Step {
    rate: f32,
    decay: f32,
    eps: f32,
}

impl Formula for Adagrad {
    type Step = Step;

    fn step(&self, step: u64) -> Step {
        Step { rate: self.rate(step) as f32, decay: self.weight_decay as f32, eps: self.eps as f32 }
    }

    #[inline(always)]
    fn update<S: Simd>(s: S, step: &Step, p: &mut [f32], g: &[f32], [h, _]: [&mut [f32]; 2]) {
        let (rate, decay, eps) = (s.splat(step.rate), s.splat(step.decay), s.splat(step.eps));
        update!(s, [p, h], g, {
            let g = s.add(g, s.mul(decay, p));
            let h = s.add(h, s.mul(g, g));
            [s.sub(p, s.mul(rate, s.div(g, s.add(s.sqrt(h), eps)))), h]
        });
    }
}
