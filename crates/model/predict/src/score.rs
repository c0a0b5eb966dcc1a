//! Error over a set of recordings.

/// Error over a set of recordings, from absolute relative errors.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// Geometric mean.
    pub gmae: f64,
    /// Mean.
    pub mean: f64,
    /// Ninetieth percentile.
    pub p90: f64,
    /// The worst.
    pub max: f64,
}

impl Score {
    /// Scores signed relative errors. In the geometric mean, an error below a hundredth of a percent counts as that much, so that
    /// a single lucky hit does not dominate.
    pub fn from_errors(errors: impl IntoIterator<Item = f64>) -> Score {
        let mut sizes: Vec<f64> = errors.into_iter().map(f64::abs).collect();
        if sizes.is_empty() {
            return Score::default();
        }
        sizes.sort_by(f64::total_cmp);
        let count = sizes.len() as f64;
        let rank = (sizes.len() - 1) as f64 * 0.9;
        let (low, high) = (sizes[rank.floor() as usize], sizes[rank.ceil() as usize]);
        Score {
            gmae: (sizes.iter().map(|e| e.max(1e-4).ln()).sum::<f64>() / count).exp(),
            mean: sizes.iter().sum::<f64>() / count,
            p90: low + (high - low) * rank.fract(),
            max: sizes[sizes.len() - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Score;

    #[test]
    fn scores_of_known_errors() {
        let score = Score::from_errors([0.01, -0.04, 0.02]);
        assert!((score.mean - 0.07 / 3.0).abs() < 1e-12);
        assert!((score.gmae - 0.02).abs() < 1e-12);
        assert!((score.max - 0.04).abs() < 1e-12);
        assert!((score.p90 - 0.036).abs() < 1e-12);
        assert_eq!(Score::from_errors([]), Score::default());
    }
}
