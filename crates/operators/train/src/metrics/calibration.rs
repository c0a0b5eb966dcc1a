//! Calibration of predicted probabilities.

use std::num::NonZero;

use rayon::prelude::*;
use serde::Serialize;

use super::{Batch, ExactSum};

/// Samples that one thread sums.
const PART: usize = 1 << 14;

/// Predictions beside labels, in buckets of equal width of the predicted probability.
#[derive(Debug, Clone)]
pub struct Calibration {
    buckets: Vec<Bucket>,
}

#[derive(Debug, Clone, Default)]
struct Bucket {
    samples: u64,
    positives: u64,
    predicted: ExactSum,
}

/// A point of the reliability diagram: a bucket of predicted probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reliability {
    /// Number of samples.
    pub samples: u64,
    /// Mean predicted probability.
    pub predicted: f64,
    /// Share of label 1.
    pub observed: f64,
}

impl Calibration {
    /// No samples, in a number of buckets of equal width from 0 to 1; a bucket has its lower end, the last one 1 too.
    #[must_use]
    pub fn new(buckets: NonZero<u16>) -> Self {
        Calibration { buckets: vec![Bucket::default(); usize::from(buckets.get())] }
    }

    /// Adds a batch.
    pub fn add(&mut self, batch: &Batch<'_>) {
        let count = self.buckets.len();
        let parts = batch.parts(PART).into_par_iter().map(|part| {
            let mut buckets = vec![Bucket::default(); count];
            for (score, label) in part.samples() {
                let probability = part.kind().probability(score);
                let bucket = &mut buckets[((probability * count as f64) as usize).min(count - 1)];
                bucket.samples += 1;
                bucket.positives += u64::from(label);
                bucket.predicted.add(probability);
            }
            buckets
        });
        for part in parts.collect::<Vec<_>>() {
            self.buckets.iter_mut().zip(&part).for_each(|(bucket, part)| bucket.merge(part));
        }
    }

    /// Sum of predicted probabilities over the number of labels 1: above 1, the model predicts too many. `None` where
    /// no label is 1.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let positives: u64 = self.buckets.iter().map(|bucket| bucket.positives).sum();
        let mut predicted = ExactSum::new();
        self.buckets.iter().for_each(|bucket| predicted.merge(&bucket.predicted));
        (positives > 0).then(|| predicted.value() / positives as f64)
    }

    /// Expected calibration error: mean over samples of the distance between predicted and observed share of their
    /// bucket. `None` without samples.
    #[must_use]
    pub fn expected_error(&self) -> Option<f64> {
        let samples: u64 = self.buckets.iter().map(|bucket| bucket.samples).sum();
        let distance = |bucket: &Bucket| (bucket.predicted.value() - bucket.positives as f64).abs();
        (samples > 0).then(|| self.buckets.iter().map(distance).sum::<f64>() / samples as f64)
    }

    /// Every bucket, in order of the probability; `None` for an empty one.
    #[must_use]
    pub fn reliability(&self) -> Vec<Option<Reliability>> {
        self.buckets.iter().map(Bucket::reliability).collect()
    }
}

impl Bucket {
    fn merge(&mut self, other: &Bucket) {
        if other.samples > 0 {
            self.samples += other.samples;
            self.positives += other.positives;
            self.predicted.merge(&other.predicted);
        }
    }

    fn reliability(&self) -> Option<Reliability> {
        let samples = self.samples as f64;
        (self.samples > 0).then(|| Reliability {
            samples: self.samples,
            predicted: self.predicted.value() / samples,
            observed: self.positives as f64 / samples,
        })
    }
}
