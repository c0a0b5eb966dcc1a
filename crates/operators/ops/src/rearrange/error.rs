//! Errors of copies.

use steptime_tensor::TensorError;
use thiserror::Error;

/// Reason why elements cannot be moved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RearrangeError {
    /// A copy between different shapes.
    #[error("a copy from shape {from:?} to {to:?}: make them one shape")]
    Shapes {
        /// Shape of the input.
        from: Vec<usize>,
        /// Shape of the output.
        to: Vec<usize>,
    },
    /// Pieces that do not make up the whole.
    #[error("shapes {shapes:?} along dimension {axis} do not make up {whole:?}: see piece {index}")]
    Piece {
        /// Index of the first piece that does not fit; the number of pieces where all fit and more are needed.
        index: usize,
        /// The dimension.
        axis: usize,
        /// Shapes of the pieces.
        shapes: Vec<Vec<usize>>,
        /// Shape of the whole.
        whole: Vec<usize>,
    },
    /// A view that cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
