//! Errors in an interaction's operands.

use steptime_tensor::TensorError;
use thiserror::Error;

/// Reason why an interaction cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InteractionError {
    /// A size of zero, or one that overflows.
    #[error(
        "an interaction of {features} vectors of {dim} floats: both must be at least 1, and F x F and F x D fit"
    )]
    Size {
        /// Number of vectors of a sample.
        features: usize,
        /// Number of floats of a vector.
        dim: usize,
    },
    /// An operand of another shape.
    #[error("interaction: {operand} has shape {given:?}, and {expected:?} is needed")]
    Shape {
        /// Name of the operand.
        operand: &'static str,
        /// Shape of the operand.
        given: Vec<usize>,
        /// The shape it must have.
        expected: Vec<usize>,
    },
    /// An operand whose vectors are not neighbouring floats.
    #[error(
        "interaction: {operand} has stride {stride} along its last dimension: make it contiguous there first"
    )]
    Stride {
        /// Name of the operand.
        operand: &'static str,
        /// Last stride of the operand.
        stride: usize,
    },
    /// A view that cannot be taken.
    #[error("interaction: {0}")]
    Tensor(#[from] TensorError),
}
