//! Errors of predictions.

use serde::{Deserialize, Serialize};

/// Smallest relative error that counts in a geometric mean: a single exact hit would make it zero.
const LEAST: f64 = 1e-4;

/// Errors of predictions, relative to the measured values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Number of compared rows.
    pub rows: usize,
    /// Geometric mean of absolute relative errors.
    pub gmae: f64,
    /// Mean of absolute relative errors.
    pub mean: f64,
    /// 90th percentile of absolute relative errors.
    pub p90: f64,
    /// Geometric mean of predicted over measured, less one: the direction of the errors.
    pub bias: f64,
}

impl Score {
    /// Computes the score from logarithms of measured over predicted.
    #[must_use]
    pub fn from_residuals(residuals: &[f64]) -> Option<Score> {
        let mut errors: Vec<f64> =
            residuals.iter().filter(|r| r.is_finite()).map(|r| ((-r).exp() - 1.0).abs()).collect();
        if errors.is_empty() {
            return None;
        }
        errors.sort_by(f64::total_cmp);
        let rows = errors.len();
        let count = rows as f64;
        let finite = residuals.iter().filter(|r| r.is_finite());
        Some(Score {
            rows,
            gmae: (errors.iter().map(|e| e.max(LEAST).ln()).sum::<f64>() / count).exp(),
            mean: errors.iter().sum::<f64>() / count,
            p90: errors[(rows * 9 / 10).min(rows - 1)],
            bias: (-finite.sum::<f64>() / count).exp() - 1.0,
        })
    }
}

/// Value that a share of all values does not exceed; the values need no order. Not-a-number without values.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_what_was_measured() {
        // Predicted 110, 80 and 100 of 100 measured.
        let residuals = [(100f64 / 110.0).ln(), (100f64 / 80.0).ln(), 0.0, f64::NAN];
        let score = Score::from_residuals(&residuals).unwrap();
        assert_eq!(score.rows, 3);
        assert!((score.mean - 0.1).abs() < 1e-12);
        assert!((score.p90 - 0.2).abs() < 1e-12);
        assert!((score.gmae - (0.1f64 * 0.2 * 1e-4).cbrt()).abs() < 1e-12);
        assert!((score.bias - ((1.1f64 * 0.8).cbrt() - 1.0)).abs() < 1e-12);
        assert_eq!(Score::from_residuals(&[]), None);
    }

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[0.0, 10.0], 0.9), 9.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
