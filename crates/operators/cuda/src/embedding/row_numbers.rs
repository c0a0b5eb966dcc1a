//! Numbers of an optimizer's step, for the kernels.

use bytemuck::{Pod, Zeroable};
use steptime_ops::embedding::backward::{BackwardError, Decay, Rounding, RowOptimizer as OnCpu, RowRule};
use steptime_ops::embedding::{Element, Pooling, Table, Tables};

/// An optimizer's settings, as defined in `steptime_ops`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowSettings {
    /// Update rule of a row.
    pub rule: RowRule,
    /// The learning rate.
    pub lr: f32,
    /// Weight decay.
    pub decay: Decay,
    /// Rounding of weights to 16-bit floats.
    pub rounding: Rounding,
}

impl RowSettings {
    /// Settings without decay, with rounding to nearest.
    #[must_use]
    pub fn new(rule: RowRule, lr: f32) -> RowSettings {
        RowSettings { rule, lr, decay: Decay::None, rounding: Rounding::Nearest }
    }

    /// Fails with the first setting that is out of range.
    pub(super) fn check(&self) -> Result<(), BackwardError> {
        let table = Table::zeros("settings", [1, 1], Element::F32)?;
        OnCpu::new(self.rule, self.lr, &Tables::new(vec![table], Pooling::Sum))?.with_decay(self.decay)?;
        Ok(())
    }

    /// Whether a step's numbers depend on how many came before.
    pub(super) fn counts(&self) -> bool {
        matches!(self.rule, RowRule::Adam { .. } | RowRule::PartialRowWiseAdam { .. })
            || self.rounding != Rounding::Nearest
    }
}

/// Layout of `Numbers` in `backward.cu`. Those that change from step to step (`rate`, `root`, `dice`) are updated on
/// the device.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct Numbers {
    lr: f32,
    decay: f32,
    keep: f32,
    rate: f32,
    root: f32,
    momentum: f32,
    beta1: f32,
    beta2: f32,
    eps: f32,
    unused: f32,
    dice: u64,
    seed: u64,
    pub(super) step: u64,
}

impl Numbers {
    /// The numbers of these settings after `step` steps.
    pub(super) fn new(settings: &RowSettings, step: u64) -> Numbers {
        let lr = settings.lr;
        let (momentum, beta1, beta2, eps) = match settings.rule {
            RowRule::Sgd { momentum } => (momentum, 0.0, 0.0, 0.0),
            RowRule::Adagrad { eps } | RowRule::RowWiseAdagrad { eps } => (0.0, 0.0, 0.0, eps),
            RowRule::Adam { beta1, beta2, eps } | RowRule::PartialRowWiseAdam { beta1, beta2, eps } => {
                (0.0, beta1, beta2, eps)
            }
        };
        Numbers {
            lr,
            decay: if let Decay::Gradient(decay) = settings.decay { decay } else { 0.0 },
            keep: if let Decay::Weights(decay) = settings.decay { 1.0 - lr * decay } else { 1.0 },
            rate: lr,
            root: 1.0,
            momentum,
            beta1,
            beta2,
            eps,
            unused: 0.0,
            dice: 0,
            seed: if let Rounding::Stochastic { seed } = settings.rounding { seed } else { 0 },
            step,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_as_on_the_cpu() {
        assert!(RowSettings::new(RowRule::SGD, 0.1).check().is_ok());
        let error = RowSettings::new(RowRule::SGD, -0.1).check().unwrap_err().to_string();
        assert!(error.contains("learning rate"), "{error}");
        let wrong = RowSettings { decay: Decay::Weights(f32::NAN), ..RowSettings::new(RowRule::ADAM, 0.1) };
        assert!(wrong.check().is_err());
    }

    #[test]
    fn decay_of_the_weights_is_what_is_kept() {
        let settings = RowSettings { decay: Decay::Weights(0.5), ..RowSettings::new(RowRule::SGD, 0.1) };
        let numbers = Numbers::new(&settings, 3);
        assert_eq!((numbers.keep, numbers.decay, numbers.step), (1.0 - 0.1 * 0.5, 0.0, 3));
        assert!(!settings.counts() && RowSettings::new(RowRule::ADAM, 0.1).counts());
    }
}
