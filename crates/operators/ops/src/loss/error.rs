//! Errors in a loss's operands.

use thiserror::Error;

/// Reason why a loss cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LossError {
    /// An operand of another length than the predictions.
    #[error("loss: {operand} has {given} elements, and there are {expected} predictions")]
    Length {
        /// Name of the operand.
        operand: &'static str,
        /// Number of its elements.
        given: usize,
        /// Number of predictions.
        expected: usize,
    },
    /// The mean of no elements.
    #[error("loss: the mean of no elements: give at least one, or ask for the sum")]
    Empty,
}
