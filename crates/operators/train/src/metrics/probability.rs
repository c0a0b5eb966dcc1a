//! Probabilities and losses of scores.

use super::Scores;

/// Largest loss of one sample that is measured by a probability, in nats, as PyTorch's `binary_cross_entropy` has it:
/// a probability of exactly 0 or 1 is the rounding of one close to it.
const LARGEST: f64 = 100.0;

impl Scores {
    /// Probability of label 1.
    pub(super) fn probability(self, score: f32) -> f64 {
        let score = f64::from(score);
        match self {
            Scores::Probabilities => score,
            Scores::Logits => {
                // The exponential of a negative number alone: it cannot overflow.
                let small = (-score.abs()).exp();
                (if score < 0.0 { small } else { 1.0 }) / (1.0 + small)
            }
        }
    }

    /// Negative logarithm of the probability of the label, in nats.
    pub(super) fn loss(self, score: f32, label: bool) -> f64 {
        let score = f64::from(score);
        match (self, label) {
            (Scores::Logits, true) => softplus(-score),
            (Scores::Logits, false) => softplus(score),
            (Scores::Probabilities, true) => (-score.ln()).min(LARGEST),
            (Scores::Probabilities, false) => (-(-score).ln_1p()).min(LARGEST),
        }
    }
}

/// ln(1 + e^x).
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logit_and_its_probability_have_the_same_loss() {
        for logit in [-12.5f32, -3.0, -0.1, 0.0, 0.7, 5.0] {
            let probability = Scores::Logits.probability(logit);
            for (label, expected) in [(true, -probability.ln()), (false, -(1.0 - probability).ln())] {
                let loss = Scores::Logits.loss(logit, label);
                assert!(
                    (loss - expected).abs() <= 1e-12 * expected.max(1.0),
                    "{logit} {label}: {loss} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_ends_have_their_limits() {
        assert_eq!(Scores::Logits.loss(f32::INFINITY, true), 0.0);
        assert_eq!(Scores::Logits.loss(f32::INFINITY, false), f64::INFINITY);
        assert_eq!(Scores::Logits.loss(-200.0, true), 200.0);
        assert_eq!(Scores::Logits.probability(f32::NEG_INFINITY), 0.0);
        assert_eq!(Scores::Probabilities.loss(0.0, true), LARGEST);
        assert_eq!(Scores::Probabilities.loss(1.0, true), 0.0);
        assert_eq!(Scores::Probabilities.loss(1.0, false), LARGEST);
        assert_eq!(Scores::Probabilities.loss(0.0, false), 0.0);
    }
}
