//! One step predicted for several GPUs.

use serde::Serialize;

use super::predict::PredictionReport;
use super::shared::SCHEMA;

/// Predictions of one step for several GPUs, in the order in which the GPUs were given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `predict`.
    pub command: &'static str,
    /// One answer per GPU, each as for that GPU alone.
    pub predictions: Vec<PredictionReport>,
}

impl CompareReport {
    /// Joins answers.
    #[must_use]
    pub fn new(predictions: Vec<PredictionReport>) -> CompareReport {
        CompareReport { schema: SCHEMA, command: "predict", predictions }
    }
}
