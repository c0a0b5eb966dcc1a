//! Errors in the operands of a program.

use steptime_tensor::TensorError;
use thiserror::Error;

/// Reason why a program cannot be made or run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ElementwiseError {
    /// A program without outputs.
    #[error("an elementwise program needs at least one output")]
    NoOutput,
    /// Too few or too many inputs.
    #[error("the program reads {needed} inputs, and {given} are given")]
    Inputs {
        /// Number of inputs the expressions use: one more than the largest index.
        needed: usize,
        /// Inputs given.
        given: usize,
    },
    /// Too few or too many outputs.
    #[error("the program has {needed} outputs, and {given} are given")]
    Outputs {
        /// Expressions of the program.
        needed: usize,
        /// Outputs given.
        given: usize,
    },
    /// Outputs of different shapes.
    #[error("output {index} has shape {shape:?}, and output 0 has {first:?}: give all outputs one shape")]
    OutputShape {
        /// Index of the output.
        index: usize,
        /// Shape of that output.
        shape: Vec<usize>,
        /// Shape of the first output.
        first: Vec<usize>,
    },
    /// An input that does not broadcast to the outputs.
    #[error("input {index}: {source}")]
    Input {
        /// Index of the input.
        index: usize,
        /// The reason.
        source: TensorError,
    },
    /// An in-place input with an output that does not exist.
    #[error("input {index} is output {output} in place, and there are {outputs} outputs")]
    InPlace {
        /// Index of the input.
        index: usize,
        /// Index of the output.
        output: usize,
        /// Number of outputs.
        outputs: usize,
    },
}
