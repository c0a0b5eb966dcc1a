//! Intervals with guaranteed coverage: their width is set by held-out rows.
//!
//! A small second model predicts the size of errors; the share of held-out errors inside a multiple of it
//! determines the multiple (conformal prediction). The second model is cross-fitted like the first.

use super::boost::{BoostOptions, boost};
use super::cross_validation::Folds;
use super::error::LearnError;
use super::score::quantile;
use super::table::Table;
use super::trees::Trees;
use std::collections::BTreeMap;

/// Share of rows that an interval must cover.
pub const INSIDE: f64 = 0.9;
/// Half-width of a normal distribution's 90 % interval, in standard deviations.
const NORMAL_90: f64 = 1.645;
/// Smallest error of a logarithm of time that is distinguished from zero: the clock's resolution.
const LEAST: f64 = 2e-3;
/// Number of rows below which all share one width.
const ROWS_FOR_TREES: usize = 200;
/// Number of rows from which large trees are grown.
const ROWS_FOR_LARGE_TREES: usize = 15_000;
/// Greatest share of an interval's square that is common to the family.
const MOST_SHARED: f64 = 0.8;

/// Resolution of the model of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Few and small trees: for a model that is not the default.
    Coarse,
    /// Large trees, if there are enough rows.
    Fine,
}

/// Width of a prediction's interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Logarithm of the size of errors.
    pub scale: Trees,
    /// Ratio of the half-width of the 90 % interval to that size.
    pub multiple: f64,
    /// Half-width of the error that all calls of the family share.
    pub shared: f64,
    /// Share of held-out rows inside, each judged with the multiple of the other folds.
    pub inside: f64,
    /// Median half-width of held-out rows.
    pub half_width: f64,
}

impl Interval {
    /// Fits residuals of held-out rows: logarithms of measured over predicted. Rows of one group (an op and type)
    /// may err together.
    ///
    /// # Errors
    ///
    /// Those of [`boost`].
    pub fn fit(
        table: &Table,
        residuals: &[f64],
        folds: &Folds,
        groups: &[&str],
        detail: Detail,
    ) -> Result<Interval, LearnError> {
        let rows: Vec<usize> = (0..residuals.len()).filter(|&row| residuals[row].is_finite()).collect();
        let learn = |rows: &[usize]| scale(table, residuals, rows, detail);
        let finite = |rows: &[usize]| -> Vec<usize> {
            rows.iter().copied().filter(|&row| residuals[row].is_finite()).collect()
        };
        let scales = folds.out_of_fold(|train, held_out| {
            let predicted = learn(&finite(train))?.predict(&table.select(held_out));
            Ok::<_, LearnError>(predicted.into_iter().map(|scale| f64::from(scale).exp()).collect())
        })?;
        let multiple_of = |rows: &[usize]| {
            let ratios: Vec<f64> = rows.iter().map(|&row| residuals[row].abs() / scales[row]).collect();
            // One more row than there are: the next one is equally likely to be at any rank.
            quantile(&ratios, INSIDE * (rows.len() as f64 + 1.0) / rows.len().max(1) as f64)
        };
        let mut inside = 0usize;
        for fold in 0..folds.count() {
            let (train, held_out) = folds.split(fold);
            let multiple = multiple_of(&finite(&train));
            inside += finite(&held_out)
                .iter()
                .filter(|&&row| residuals[row].abs() <= multiple * scales[row])
                .count();
        }
        let multiple = multiple_of(&rows);
        let widths: Vec<f64> = rows.iter().map(|&row| multiple * scales[row]).collect();
        Ok(Interval {
            scale: learn(&rows)?,
            multiple: if multiple.is_finite() { multiple } else { 1.0 },
            shared: shared(residuals, &rows, groups),
            inside: inside as f64 / rows.len().max(1) as f64,
            half_width: if widths.is_empty() { 0.0 } else { quantile(&widths, 0.5) },
        })
    }

    /// Returns the own and shared half-width, given the output of [`scale`](Interval::scale) for a row.
    #[must_use]
    pub fn half_widths(&self, scale: f32) -> (f64, f64) {
        let whole = f64::from(scale).exp() * self.multiple;
        let shared = self.shared.min(whole * MOST_SHARED.sqrt());
        ((whole * whole - shared * shared).sqrt(), shared)
    }
}

/// Learns the logarithm of the size of errors from some rows.
fn scale(table: &Table, residuals: &[f64], rows: &[usize], detail: Detail) -> Result<Trees, LearnError> {
    let target: Vec<f64> = rows.iter().map(|&row| residuals[row].abs().max(LEAST).ln()).collect();
    if rows.len() < ROWS_FOR_TREES {
        let mean = target.iter().sum::<f64>() / target.len().max(1) as f64;
        return Ok(Trees::constant(mean as f32, table.columns()));
    }
    let small =
        BoostOptions { trees: 60, rate: 0.08, depth: 4, leaves: 12, rows: 25.0, ..BoostOptions::default() };
    let options = match detail {
        Detail::Fine if rows.len() >= ROWS_FOR_LARGE_TREES => {
            BoostOptions { trees: 150, depth: 8, leaves: 48, ..small }
        }
        _ => small,
    };
    boost(&table.select(rows), &target, &vec![1.0; rows.len()], &options)
}

/// Returns the half-width of the error that a whole group has in common: the spread of the groups' means beyond the
/// part that their own scatter explains, groups weighted by their rows.
fn shared(residuals: &[f64], rows: &[usize], groups: &[&str]) -> f64 {
    let mut by_group: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for &row in rows {
        by_group.entry(groups[row]).or_default().push(residuals[row]);
    }
    let (mut weighted, mut total) = (0.0, 0.0);
    for values in by_group.values().filter(|values| values.len() >= 5) {
        let count = values.len() as f64;
        // Ends are cut off: one broken measurement is not a group's error.
        let (low, high) = (quantile(values, 0.05), quantile(values, 0.95));
        let clipped: Vec<f64> = values.iter().map(|value| value.clamp(low, high)).collect();
        let mean = clipped.iter().sum::<f64>() / count;
        let scatter = clipped.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        weighted += count * (mean * mean - scatter / count);
        total += count;
    }
    if total > 0.0 { NORMAL_90 * (weighted / total).max(0.0).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::cross_validation::mix;
    use super::*;

    /// A normal variate from two uniform ones.
    fn normal(at: u64) -> f64 {
        let uniform = |seed| (mix(at, seed) >> 11) as f64 / (1u64 << 53) as f64;
        (-2.0 * uniform(1).max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * uniform(2)).cos()
    }

    #[test]
    fn wide_where_errors_are_large_and_nine_in_ten_inside() {
        let mut table = Table::new(1);
        let mut residuals = Vec::new();
        let cases: Vec<u32> = (0..3000).collect();
        for at in 0..3000u64 {
            let noisy = at % 2 == 0;
            table.push(|out| out.push(f32::from(noisy)));
            residuals.push(normal(at) * if noisy { 0.2 } else { 0.02 });
        }
        let folds = Folds::new(&cases, 5, 0);
        let interval = Interval::fit(&table, &residuals, &folds, &vec!["one"; 3000], Detail::Fine).unwrap();
        assert!((0.88..0.92).contains(&interval.inside), "inside {}", interval.inside);
        let scales = interval.scale.predict(&table);
        let width = |row: usize| interval.half_widths(scales[row]).0;
        assert!((width(0) - 0.2 * NORMAL_90).abs() < 0.05, "noisy {}", width(0));
        assert!((width(1) - 0.02 * NORMAL_90).abs() < 0.005, "quiet {}", width(1));
        assert!(interval.shared < 0.02, "shared {}", interval.shared);
    }

    #[test]
    fn groups_that_err_together_share_their_error() {
        let mut table = Table::new(1);
        let names: Vec<String> = (0..30).map(|group| format!("op{group}")).collect();
        let mut residuals = Vec::new();
        for at in 0..1500u64 {
            table.push(|out| out.push(0.0));
            residuals.push(normal(at % 30 + 10_000) * 0.1 + normal(at) * 0.02);
        }
        let groups: Vec<&str> = (0..1500).map(|at| names[at % 30].as_str()).collect();
        let folds = Folds::new(&(0..1500).collect::<Vec<u32>>(), 5, 0);
        let interval = Interval::fit(&table, &residuals, &folds, &groups, Detail::Fine).unwrap();
        assert!((0.1..0.25).contains(&interval.shared), "shared {}", interval.shared);
    }

    #[test]
    fn few_rows_or_none_do_not_panic() {
        let mut table = Table::new(1);
        (0..3).for_each(|_| table.push(|out| out.push(0.0)));
        let folds = Folds::new(&[0, 1, 2], 5, 0);
        let interval =
            Interval::fit(&table, &[0.1, -0.1, f64::NAN], &folds, &["a"; 3], Detail::Fine).unwrap();
        assert!(interval.half_widths(0.1f32.ln()).0.is_finite());
        assert!(Interval::fit(&Table::new(1), &[], &Folds::new(&[], 5, 0), &[], Detail::Fine).is_ok());
    }
}
