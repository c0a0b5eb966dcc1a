//! Measures of the true probabilities.

use std::ops::Range;

use super::{Planted, PlantedRow};
use crate::Error;
use crate::convert::ordered::ordered;

/// Rows that a thread takes at once.
const PART: u64 = 8192;

/// Expected measures of a model that returns the true probability of each row: no model is better on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// Area under the curve.
    pub auc: f64,
    /// Mean logarithmic loss, natural logarithm.
    pub log_loss: f64,
    /// Expected share of labels that are 1.
    pub positives: f64,
}

impl Planted {
    /// The best expected measures on some rows, the same for any number of threads.
    ///
    /// # Errors
    ///
    /// If there are fewer than 2 rows, or no thread.
    pub fn best(&self, rows: Range<u64>, threads: usize) -> Result<Best, Error> {
        let count = rows.end.saturating_sub(rows.start);
        Error::option("number of rows", count, 2..u64::MAX, "choose at least 2")?;
        Error::option("number of threads", threads as u64, 1..1 << 16, "choose from 1 to 65535")?;
        let mut starts = (rows.start..rows.end).step_by(PART as usize);
        let mut probabilities = Vec::with_capacity(count as usize);
        let work = |start: u64| -> Result<_, Error> {
            let mut row = PlantedRow::default();
            let probability = |number| {
                self.draw(number, &mut row);
                row.probability
            };
            Ok((start..rows.end.min(start + PART)).map(probability).collect::<Vec<f64>>())
        };
        let commit = |part: Vec<f64>| {
            probabilities.extend(part);
            Ok(())
        };
        ordered(threads, || Ok(starts.next()), work, commit)?;
        Ok(Best::new(probabilities))
    }
}

impl Best {
    fn new(mut probabilities: Vec<f64>) -> Best {
        let count = probabilities.len() as f64;
        probabilities.sort_unstable_by(f64::total_cmp);
        let loss = |&p: &f64| -(p * p.ln() + (1.0 - p) * (1.0 - p).ln());
        let log_loss = probabilities.iter().map(loss).sum::<f64>() / count;
        // Each pair of a positive row above a negative one counts; equal ones count half.
        let (mut below, mut pairs, mut positives) = (0.0, 0.0, 0.0);
        for equal in probabilities.chunk_by(|a, b| a == b) {
            let p: f64 = equal.iter().sum();
            let negatives = equal.len() as f64 - p;
            // A row is not a pair with itself.
            let own: f64 = equal.iter().map(|p| p * (1.0 - p)).sum();
            pairs += p * below + 0.5 * (p * negatives - own);
            below += negatives;
            positives += p;
        }
        let own: f64 = probabilities.iter().map(|p| p * (1.0 - p)).sum();
        Best { auc: pairs / (positives * below - own), log_loss, positives: positives / count }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_area_counts_pairs(steps in proptest::collection::vec(1_u32..20, 2..40)) {
            let probabilities: Vec<f64> = steps.iter().map(|&step| f64::from(step) / 20.0).collect();
            let (mut won, mut all) = (0.0, 0.0);
            for (i, p) in probabilities.iter().enumerate() {
                for (j, q) in probabilities.iter().enumerate().filter(|&(j, _)| i != j) {
                    let _ = j;
                    let weight = p * (1.0 - q);
                    all += weight;
                    won += weight * match p.total_cmp(q) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                }
            }
            let best = Best::new(probabilities);
            prop_assert!((best.auc - won / all).abs() < 1e-9, "{} for {}", best.auc, won / all);
        }
    }
}
