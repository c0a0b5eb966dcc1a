//! Update rules of table rows.

use super::BackwardError;
use crate::optimizer::OptimizerError;

/// An update rule of table rows. p is a row, g its gradient, and D its number of columns; rows that are not looked up
/// keep weights and state. `step` counts the steps of the whole optimizer, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowRule {
    /// `m = momentum m + g; p -= lr m`. State: m of D, or none without momentum.
    Sgd {
        /// Share of m that is kept; 0 is plain gradient descent.
        momentum: f32,
    },
    /// `h += g^2; p -= lr g / (sqrt h + eps)`. State: h of D.
    Adagrad {
        /// Keeps the denominator off zero.
        eps: f32,
    },
    /// Adagrad with one h for each row: `h += mean(g^2)`. State: h of 1.
    RowWiseAdagrad {
        /// Keeps the denominator off zero.
        eps: f32,
    },
    /// `m += (1 - beta1) (g - m); v = beta2 v + (1 - beta2) g^2;
    /// p -= lr / (1 - beta1^step) m / (sqrt v / sqrt(1 - beta2^step) + eps)`. State: m of D, then v of D.
    Adam {
        /// Share of m that is kept.
        beta1: f32,
        /// Share of v that is kept.
        beta2: f32,
        /// Keeps the denominator off zero.
        eps: f32,
    },
    /// Adam with one v for each row, of `mean(g^2)`. State: m of D, then v.
    PartialRowWiseAdam {
        /// Share of m that is kept.
        beta1: f32,
        /// Share of v that is kept.
        beta2: f32,
        /// Keeps the denominator off zero.
        eps: f32,
    },
}

/// Weight decay.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Decay {
    /// No decay.
    #[default]
    None,
    /// `g += decay p` before everything else: L2 regularization.
    Gradient(f32),
    /// `p *= 1 - lr decay` before the step: decoupled from the gradient, as in AdamW.
    Weights(f32),
}

/// Rounding of new weights to 16-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// Rounding to the nearest, ties to even. Steps smaller than half of the spacing of the weights are lost.
    #[default]
    Nearest,
    /// Rounding up or down at random, so that the mean is exact. The same seed, step, table, row and column give the
    /// same bits.
    Stochastic {
        /// Selects the random numbers.
        seed: u64,
    },
}

impl RowRule {
    /// SGD without momentum.
    pub const SGD: RowRule = RowRule::Sgd { momentum: 0.0 };
    /// Row-wise Adagrad with FBGEMM's eps.
    pub const ROW_WISE_ADAGRAD: RowRule = RowRule::RowWiseAdagrad { eps: 1e-8 };
    /// Adam with PyTorch's settings.
    pub const ADAM: RowRule = RowRule::Adam { beta1: 0.9, beta2: 0.999, eps: 1e-8 };

    /// Name for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RowRule::Sgd { .. } => "SGD",
            RowRule::Adagrad { .. } => "Adagrad",
            RowRule::RowWiseAdagrad { .. } => "row-wise Adagrad",
            RowRule::Adam { .. } => "Adam",
            RowRule::PartialRowWiseAdam { .. } => "partial row-wise Adam",
        }
    }

    /// Number of floats of state for a row of `dim` columns.
    #[must_use]
    pub fn state_width(self, dim: usize) -> usize {
        match self {
            RowRule::Sgd { momentum } => {
                if momentum == 0.0 {
                    0
                } else {
                    dim
                }
            }
            RowRule::Adagrad { .. } => dim,
            RowRule::RowWiseAdagrad { .. } => 1,
            RowRule::Adam { .. } => 2 * dim,
            RowRule::PartialRowWiseAdam { .. } => dim + 1,
        }
    }

    /// Fails with the first setting that is out of range.
    pub(super) fn check(self, lr: f32, decay: Decay) -> Result<(), BackwardError> {
        let below_one = |value: f32| (0.0..1.0).contains(&value);
        let positive = |value: f32| value.is_finite() && value >= 0.0;
        let share = "it must be at least 0 and below 1";
        let finite = "it must be finite and not negative";
        let (decay, eps) = match (decay, self) {
            (Decay::None, rule) => (0.0, rule.eps()),
            (Decay::Gradient(decay) | Decay::Weights(decay), rule) => (decay, rule.eps()),
        };
        let (beta1, beta2) = match self {
            RowRule::Adam { beta1, beta2, .. } | RowRule::PartialRowWiseAdam { beta1, beta2, .. } => {
                (beta1, beta2)
            }
            _ => (0.0, 0.0),
        };
        let momentum = if let RowRule::Sgd { momentum } = self { momentum } else { 0.0 };
        let settings = [
            ("learning rate", lr, positive(lr), finite),
            ("decay", decay, positive(decay), finite),
            ("eps", eps, positive(eps), finite),
            ("momentum", momentum, below_one(momentum), share),
            ("beta1", beta1, below_one(beta1), share),
            ("beta2", beta2, below_one(beta2), share),
        ];
        match settings.into_iter().find(|&(_, _, good, _)| !good) {
            None => Ok(()),
            Some((name, value, _, needed)) => {
                Err(OptimizerError::Setting { rule: self.name(), name, value: value.into(), needed }.into())
            }
        }
    }

    fn eps(self) -> f32 {
        match self {
            RowRule::Sgd { .. } => 0.0,
            RowRule::Adagrad { eps } | RowRule::RowWiseAdagrad { eps } => eps,
            RowRule::Adam { eps, .. } | RowRule::PartialRowWiseAdam { eps, .. } => eps,
        }
    }
}
