//! One step predicted for several GPUs.

use serde::Serialize;

use super::predict::Predicted;
use super::shared::SCHEMA;

/// Predictions of one step for several GPUs, in the order in which the GPUs were given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `predict`.
    pub command: &'static str,
    /// One answer per GPU, each as for that GPU alone.
    pub predictions: Vec<Predicted>,
}

impl Compared {
    /// Joins answers.
    #[must_use]
    pub fn of(predictions: Vec<Predicted>) -> Compared {
        Compared { schema: SCHEMA, command: "predict", predictions }
    }
}
