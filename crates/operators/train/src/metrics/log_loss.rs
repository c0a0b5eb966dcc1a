//! Log loss.

use rayon::prelude::*;

use super::{Batch, ExactSum};

/// Samples that one thread sums.
const PART: usize = 1 << 14;

/// Mean binary cross-entropy, in nats: terms in double precision, their sum exact.
///
/// Terms of logits are computed without a sigmoid, and are finite for finite logits. A term of a probability is at most
/// 100 nats, as in PyTorch's `binary_cross_entropy`.
#[derive(Debug, Clone, Default)]
pub struct LogLoss {
    sum: ExactSum,
    samples: u64,
    positives: u64,
}

impl LogLoss {
    /// No samples.
    #[must_use]
    pub fn new() -> Self {
        LogLoss::default()
    }

    /// Adds a batch.
    pub fn add(&mut self, batch: &Batch<'_>) {
        let sums = batch.parts(PART).into_par_iter().map(|part| {
            let (mut sum, mut positives) = (ExactSum::new(), 0);
            for (score, label) in part.samples() {
                sum.add(part.kind().loss(score, label));
                positives += u64::from(label);
            }
            (sum, positives)
        });
        for (sum, positives) in sums.collect::<Vec<_>>() {
            self.sum.merge(&sum);
            self.positives += positives;
        }
        self.samples += batch.len() as u64;
    }

    /// Number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Number of samples of label 1.
    #[must_use]
    pub fn positives(&self) -> u64 {
        self.positives
    }

    /// Mean loss, in nats; `None` without samples.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum.value() / self.samples as f64)
    }

    /// Normalised entropy: the mean loss over that of a constant prediction, the share of label 1. Below 1, the model
    /// knows more than the share. `None` where all labels are equal, because that prediction has no loss.
    #[must_use]
    pub fn normalised_entropy(&self) -> Option<f64> {
        if self.positives == 0 || self.positives == self.samples {
            return None;
        }
        let share = self.positives as f64 / self.samples as f64;
        let entropy = -(share * share.ln() + (1.0 - share) * (-share).ln_1p());
        self.mean().map(|loss| loss / entropy)
    }
}
