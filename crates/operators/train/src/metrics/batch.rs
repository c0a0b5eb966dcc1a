//! A checked evaluation batch.

use serde::{Deserialize, Serialize};

use super::MeasureError;

/// Meaning of a model's scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scores {
    /// Log-odds: any number, an infinite one too.
    Logits,
    /// Probabilities of label 1, from 0 to 1.
    Probabilities,
}

/// Scores and labels of one evaluation batch: no score is NaN, every label is 0 or 1.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    kind: Scores,
    scores: &'a [f32],
    labels: &'a [f32],
}

impl<'a> Batch<'a> {
    /// Checks a batch of any size; `before` is the number of samples of earlier batches, for the places in errors.
    ///
    /// # Errors
    ///
    /// Unequal lengths; the first sample whose score is NaN or, for probabilities, outside of [0, 1], or whose label is
    /// neither 0 nor 1.
    pub fn new(
        kind: Scores,
        scores: &'a [f32],
        labels: &'a [f32],
        before: u64,
    ) -> Result<Self, MeasureError> {
        if scores.len() != labels.len() {
            return Err(MeasureError::Lengths { scores: scores.len(), labels: labels.len() });
        }
        // Without early exits, which would prevent vector instructions.
        let valid = |valid, (&score, &label): (&f32, &f32)| valid & kind.allows(score) & is_label(label);
        match scores.iter().zip(labels).fold(true, valid) {
            true => Ok(Batch { kind, scores, labels }),
            false => Err(first_error(kind, scores, labels, before)),
        }
    }

    /// Meaning of the scores.
    #[must_use]
    pub fn kind(&self) -> Scores {
        self.kind
    }

    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Whether the batch has no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// Score and label (true: 1) of every sample, in order.
    pub fn samples(&self) -> impl Iterator<Item = (f32, bool)> + use<'a> {
        self.scores.iter().zip(self.labels).map(|(&score, &label)| (score, label == 1.0))
    }

    /// Parts of at most `size` samples, in order.
    pub(super) fn parts(&self, size: usize) -> Vec<Batch<'a>> {
        let parts = self.scores.chunks(size).zip(self.labels.chunks(size));
        parts.map(|(scores, labels)| Batch { kind: self.kind, scores, labels }).collect()
    }
}

impl Scores {
    fn allows(self, score: f32) -> bool {
        match self {
            Scores::Logits => !score.is_nan(),
            Scores::Probabilities => (0.0..=1.0).contains(&score),
        }
    }
}

fn is_label(label: f32) -> bool {
    (label == 0.0) | (label == 1.0)
}

/// The error of the first sample that is invalid.
fn first_error(kind: Scores, scores: &[f32], labels: &[f32], before: u64) -> MeasureError {
    let mut samples = scores.iter().zip(labels);
    let invalid = |(&score, &label): (&f32, &f32)| !kind.allows(score) || !is_label(label);
    let position = samples.position(invalid).unwrap_or(0);
    let (sample, score, label) = (before + position as u64, scores[position], labels[position]);
    match (score.is_nan(), kind.allows(score)) {
        (true, _) => MeasureError::NotANumber { sample, position },
        (_, false) => MeasureError::NotAProbability { sample, position, score },
        _ => MeasureError::Label { sample, position, label },
    }
}
