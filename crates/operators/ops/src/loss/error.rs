//! What can be wrong with a loss's operands.

use thiserror::Error;

/// Why a loss cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LossError {
    /// An operand of another length than the predictions.
    #[error("loss: {operand} has {given} elements, and there are {expected} predictions")]
    Length {
        /// Which operand.
        operand: &'static str,
        /// Its elements.
        given: usize,
        /// Predictions there are.
        expected: usize,
    },
    /// The mean of no elements.
    #[error("loss: the mean of no elements: give at least one, or ask for the sum")]
    Empty,
}
