//! Numbers of the optimizer, which may change from step to step.

use crate::error::Error;

/// Settings of an optimizer: learning rate, and the constants of its formula. Each step reads them again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    /// Learning rate.
    pub rate: f64,
    /// Share of the first moment that Adam keeps.
    pub beta1: f64,
    /// Share of the second moment that Adam keeps.
    pub beta2: f64,
    /// Addend of the denominator of Adagrad and Adam.
    pub eps: f64,
    /// Decay of the weights by AdamW, as a multiple of the learning rate.
    pub decay: f64,
}

impl Numbers {
    /// PyTorch's defaults for an optimizer class: `SGD`, `Adagrad`, `Adam` or `AdamW`.
    #[must_use]
    pub fn for_class(class: &str) -> Numbers {
        let adam = Numbers { rate: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 0.0 };
        match class {
            "Adagrad" => Numbers { rate: 1e-2, eps: 1e-10, ..adam },
            "AdamW" => Numbers { decay: 1e-2, ..adam },
            "Adam" => adam,
            _ => Numbers { rate: 1e-3, ..adam },
        }
    }

    /// The same settings with another learning rate.
    #[must_use]
    pub fn with_rate(self, rate: f64) -> Numbers {
        Numbers { rate, ..self }
    }

    /// Numbers of the formula of an optimizer class in one step, from 1: as the operators read them.
    pub(crate) fn of_step(&self, class: &str, step: u64) -> Vec<f32> {
        let Numbers { rate, beta1, beta2, eps, decay } = *self;
        let all = match class {
            "Adagrad" => vec![rate, eps],
            "Adam" | "AdamW" => {
                let step = i32::try_from(step).unwrap_or(i32::MAX);
                let keep = if class == "AdamW" { 1.0 - rate * decay } else { 1.0 };
                let (own, root) = (rate / (1.0 - beta1.powi(step)), (1.0 - beta2.powi(step)).sqrt());
                vec![1.0 - beta1, beta2, 1.0 - beta2, own, root, eps, keep]
            }
            _ => vec![rate],
        };
        all.into_iter().map(|number| number as f32).collect()
    }

    /// Checks that all settings are in their ranges.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let share = "it must be at least 0 and below 1";
        let positive = "it must be finite and not negative";
        let is_share = |value: f64| (0.0..1.0).contains(&value);
        let is_positive = |value: f64| value.is_finite() && value >= 0.0;
        let all = [
            ("the learning rate", self.rate, is_positive(self.rate), positive),
            ("beta1", self.beta1, is_share(self.beta1), share),
            ("beta2", self.beta2, is_share(self.beta2), share),
            ("eps", self.eps, is_positive(self.eps), positive),
            ("the weight decay", self.decay, is_positive(self.decay), positive),
        ];
        match all.into_iter().find(|(_, _, good, _)| !good) {
            Some((name, value, _, needed)) => Err(Error::Setting { name, value, needed }),
            None => Ok(()),
        }
    }
}
