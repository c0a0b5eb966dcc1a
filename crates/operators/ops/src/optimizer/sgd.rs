//! Stochastic gradient descent, as `torch.optim.SGD`.

use super::error::{check, check_positive, check_share};
use super::rule::private::Formula;
use super::{OptimizerError, Rule};
use crate::simd::{Simd, update};

/// Gradient descent: `g += weight_decay p; m = momentum m + (1 - dampening) g; p -= lr m`; the first step has `m = g`.
/// With `nesterov`, `p -= lr (g + momentum m)`. Without momentum, m is not used: `p -= lr g`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Share of m that is kept.
    pub momentum: f64,
    /// Share of the gradient that is not added to m.
    pub dampening: f64,
    /// Factor of the parameter that is added to the gradient.
    pub weight_decay: f64,
    /// Whether to look one step of momentum ahead.
    pub nesterov: bool,
}

impl Sgd {
    /// Settings without momentum and weight decay.
    #[must_use]
    pub fn new(lr: f64) -> Sgd {
        Sgd { lr, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false }
    }

    /// Share of m that is kept, and share of the gradient that is added.
    fn shares(&self, step: u64) -> (f64, f64) {
        if step == 1 { (0.0, 1.0) } else { (self.momentum, 1.0 - self.dampening) }
    }
}

impl Rule for Sgd {
    const NAME: &'static str = "SGD";

    fn states(&self) -> usize {
        usize::from(self.momentum != 0.0)
    }

    fn check(&self) -> Result<(), OptimizerError> {
        check_positive(Self::NAME, "lr", self.lr)?;
        check_share(Self::NAME, "momentum", self.momentum)?;
        check_positive(Self::NAME, "weight_decay", self.weight_decay)?;
        check(Self::NAME, "dampening", self.dampening, self.dampening.is_finite(), "it must be finite")?;
        let nesterov = !self.nesterov || (self.momentum > 0.0 && self.dampening == 0.0);
        let needed = "nesterov needs a momentum above 0 and dampening 0";
        check(Self::NAME, "momentum", self.momentum, nesterov, needed)
    }

    fn reference(&self, step: u64, parameter: &mut f64, gradient: f64, state: &mut [f64]) {
        let gradient = gradient + self.weight_decay * *parameter;
        let Some(m) = state.first_mut() else {
            *parameter -= self.lr * gradient;
            return;
        };
        let (keep, take) = self.shares(step);
        *m = keep * *m + take * gradient;
        *parameter -= self.lr * if self.nesterov { gradient + self.momentum * *m } else { *m };
    }
}

/// The settings in single precision.
#[derive(Clone, Copy)]
pub struct Step {
    lr: f32,
    keep: f32,
    take: f32,
    ahead: f32,
    decay: f32,
    nesterov: bool,
    momentum: bool,
}

impl Formula for Sgd {
    type Step = Step;

    fn step(&self, step: u64) -> Step {
        let (keep, take) = self.shares(step);
        Step {
            lr: self.lr as f32,
            keep: keep as f32,
            take: take as f32,
            ahead: self.momentum as f32,
            decay: self.weight_decay as f32,
            nesterov: self.nesterov,
            momentum: self.momentum != 0.0,
        }
    }

    #[inline(always)]
    fn update<S: Simd>(s: S, step: &Step, p: &mut [f32], g: &[f32], [m, _]: [&mut [f32]; 2]) {
        let (lr, decay) = (s.splat(step.lr), s.splat(step.decay));
        let (keep, take, ahead) = (s.splat(step.keep), s.splat(step.take), s.splat(step.ahead));
        if step.momentum {
            update!(s, [p, m], g, {
                let g = s.add(g, s.mul(decay, p));
                let m = s.add(s.mul(keep, m), s.mul(take, g));
                let along = if step.nesterov { s.add(g, s.mul(ahead, m)) } else { m };
                [s.sub(p, s.mul(lr, along)), m]
            });
        } else {
            update!(s, [p], g, [s.sub(p, s.mul(lr, s.add(g, s.mul(decay, p))))]);
        }
    }
}
