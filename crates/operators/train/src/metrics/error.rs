//! Errors of evaluation batches.

use thiserror::Error;

/// Reason why a batch cannot be measured. `sample` counts from the first sample of the evaluation, `position` from the
/// first of the batch, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum MeasureError {
    /// Scores and labels differ in number.
    #[error("{scores} scores and {labels} labels: give one label per score")]
    Lengths {
        /// Number of scores.
        scores: usize,
        /// Number of labels.
        labels: usize,
    },
    /// A score is not a number.
    #[error(
        "the score of sample {sample} (position {position} of its batch) is NaN: the model has diverged, lower the \
         learning rate or resume from an earlier checkpoint"
    )]
    NotANumber {
        /// Index of the sample in the evaluation.
        sample: u64,
        /// Index of the sample in the batch.
        position: usize,
    },
    /// A score that should be a probability is outside of [0, 1].
    #[error(
        "the score {score} of sample {sample} (position {position} of its batch) is not a probability: give values \
         from 0 to 1, or measure logits"
    )]
    NotAProbability {
        /// Index of the sample in the evaluation.
        sample: u64,
        /// Index of the sample in the batch.
        position: usize,
        /// The score.
        score: f32,
    },
    /// A label is neither 0 nor 1.
    #[error("the label {label} of sample {sample} (position {position} of its batch) is neither 0 nor 1")]
    Label {
        /// Index of the sample in the evaluation.
        sample: u64,
        /// Index of the sample in the batch.
        position: usize,
        /// The label.
        label: f32,
    },
}
