//! What can be wrong with operands.

use steptime_tensor::TensorError;
use thiserror::Error;

/// Why elements cannot be moved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RearrangeError {
    /// A copy between different shapes.
    #[error("a copy from shape {from:?} to {to:?}: make them one shape")]
    Shapes {
        /// Of the input.
        from: Vec<usize>,
        /// Of the output.
        to: Vec<usize>,
    },
    /// Pieces that are not the whole.
    #[error("shapes {shapes:?} along dimension {axis} do not make up {whole:?}: see piece {index}")]
    Piece {
        /// The first that does not fit; their number where all fit and more are needed.
        index: usize,
        /// The dimension.
        axis: usize,
        /// Of the pieces.
        shapes: Vec<Vec<usize>>,
        /// Of the whole.
        whole: Vec<usize>,
    },
    /// A view that cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
