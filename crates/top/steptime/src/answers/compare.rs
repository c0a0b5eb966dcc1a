//! One step predicted for several GPUs.

use serde::Serialize;

use super::predict::Predicted;
use super::shared::SCHEMA;

/// The same step for several GPUs, in the order in which they were named.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `predict`.
    pub command: &'static str,
    /// One answer a GPU, each as of that GPU alone.
    pub predictions: Vec<Predicted>,
}

impl Compared {
    /// Puts answers side by side.
    #[must_use]
    pub fn of(predictions: Vec<Predicted>) -> Compared {
        Compared { schema: SCHEMA, command: "predict", predictions }
    }
}
