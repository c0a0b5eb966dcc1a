//! What can be wrong with the operands of a program.

use steptime_tensor::TensorError;
use thiserror::Error;

/// Why a program cannot be made or run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ElementwiseError {
    /// A program without outputs.
    #[error("an elementwise program needs at least one output")]
    NoOutput,
    /// Too few or too many inputs.
    #[error("the program reads {needed} inputs, and {given} are given")]
    Inputs {
        /// Inputs the expressions name: one more than the largest index.
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
        /// Which output.
        index: usize,
        /// Its shape.
        shape: Vec<usize>,
        /// That of the first.
        first: Vec<usize>,
    },
    /// An input that does not broadcast to the outputs.
    #[error("input {index}: {source}")]
    Input {
        /// Which input.
        index: usize,
        /// Why.
        source: TensorError,
    },
    /// An in-place input naming an output there is not.
    #[error("input {index} is output {output} in place, and there are {outputs} outputs")]
    InPlace {
        /// Which input.
        index: usize,
        /// The output it names.
        output: usize,
        /// Outputs there are.
        outputs: usize,
    },
}
