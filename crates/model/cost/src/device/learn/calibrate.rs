//! Factors that fit a formula to measurements.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::score::quantile;

/// Number of rows at which half of a variant's own offset is applied.
const PRIOR_ROWS: f64 = 8.0;

/// A factor for a family and one for each of its variants, as logarithms.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Logarithm of the family's factor.
    pub family: f64,
    /// Logarithms of the variants' further factors.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<String, f64>,
}

impl Calibration {
    /// Fits the logarithms of measured over formula: medians, those of variants with few rows drawn to zero.
    #[must_use]
    pub fn fit<'a>(rows: impl Iterator<Item = (&'a str, f64)>) -> Calibration {
        let rows: Vec<(&str, f64)> = rows.filter(|row| row.1.is_finite()).collect();
        if rows.is_empty() {
            return Calibration::default();
        }
        let all: Vec<f64> = rows.iter().map(|row| row.1).collect();
        let family = quantile(&all, 0.5);
        let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (variant, residual) in rows {
            groups.entry(variant).or_default().push(residual - family);
        }
        let variants = groups.into_iter().map(|(variant, residuals)| {
            let count = residuals.len() as f64;
            (variant.to_owned(), quantile(&residuals, 0.5) * count / (count + PRIOR_ROWS))
        });
        Calibration { family, variants: variants.collect() }
    }

    /// Returns the addition to the logarithm of a formula's time.
    #[must_use]
    pub fn offset(&self, variant: &str) -> f64 {
        self.family + self.variants.get(variant).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_with_many_rows_get_their_own_factor() {
        let rows = (0..400).map(|at| if at < 300 { ("add", 0.1) } else { ("exp", 0.5) });
        let fitted = Calibration::fit(rows.chain([("pow", 9.0), ("nan", f64::NAN)]));
        assert!((fitted.offset("add") - 0.1).abs() < 0.01);
        assert!((fitted.offset("exp") - 0.5).abs() < 0.05);
        assert!(fitted.offset("pow") < 1.2, "one row is not believed");
        assert!((fitted.offset("never seen") - 0.1).abs() < 0.01);
        assert_eq!(Calibration::fit(std::iter::empty()).offset("x"), 0.0);
    }
}
