//! All measures of an evaluation together.

use std::num::NonZero;

use serde::Serialize;

use super::{Auc, Batch, Calibration, LogLoss, MeasureError, Scores};

/// Buckets of the expected calibration error.
const BUCKETS: NonZero<u16> = NonZero::new(20).expect("20 is not zero");

/// An evaluation: all measures, over batches of any size.
#[derive(Debug, Clone)]
pub struct Evaluation {
    scores: Scores,
    auc: Auc,
    log_loss: LogLoss,
    calibration: Calibration,
}

/// Measures of an evaluation; `None` where a measure is undefined, because there are no samples or all labels are equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measures {
    /// Number of samples.
    pub samples: u64,
    /// Number of samples of label 1.
    pub positives: u64,
    /// Area under the ROC curve.
    pub auc: Option<f64>,
    /// Mean binary cross-entropy, in nats.
    pub log_loss: Option<f64>,
    /// Mean binary cross-entropy over the entropy of the share of label 1.
    pub normalised_entropy: Option<f64>,
    /// Sum of predicted probabilities over the number of labels 1.
    pub calibration: Option<f64>,
    /// Expected calibration error, in 20 buckets.
    pub calibration_error: Option<f64>,
}

impl Evaluation {
    /// An evaluation of scores of one meaning, without samples.
    #[must_use]
    pub fn new(scores: Scores) -> Self {
        let (auc, log_loss, calibration) = (Auc::new(), LogLoss::new(), Calibration::new(BUCKETS));
        Evaluation { scores, auc, log_loss, calibration }
    }

    /// Adds a batch of any size: one score and one label (0 or 1) a sample.
    ///
    /// # Errors
    ///
    /// A batch that [`Batch::new`] refuses; nothing of it is added.
    pub fn add(&mut self, scores: &[f32], labels: &[f32]) -> Result<(), MeasureError> {
        let batch = Batch::new(self.scores, scores, labels, self.log_loss.samples())?;
        self.auc.add(&batch);
        self.log_loss.add(&batch);
        self.calibration.add(&batch);
        Ok(())
    }

    /// The measures of all batches.
    #[must_use]
    pub fn measures(self) -> Measures {
        Measures {
            samples: self.log_loss.samples(),
            positives: self.log_loss.positives(),
            auc: self.auc.value().ok(),
            log_loss: self.log_loss.mean(),
            normalised_entropy: self.log_loss.normalised_entropy(),
            calibration: self.calibration.ratio(),
            calibration_error: self.calibration.expected_error(),
        }
    }
}
