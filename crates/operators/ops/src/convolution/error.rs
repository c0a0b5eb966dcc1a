//! What can be wrong with a convolution's sizes and operands.

use thiserror::Error;

/// Why a convolution cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConvolutionError {
    /// A size of zero.
    #[error("convolution: {what} is 0: give at least 1")]
    Zero {
        /// Which size.
        what: &'static str,
    },
    /// Channels that cannot be dealt out to groups.
    #[error(
        "convolution: {groups} groups do not divide {inputs} input and {outputs} output channels: give a divisor of both"
    )]
    Groups {
        /// Groups asked for.
        groups: usize,
        /// Channels of the input.
        inputs: usize,
        /// Channels of the output.
        outputs: usize,
    },
    /// A kernel larger than the image.
    #[error(
        "convolution: a kernel that reaches over {reach} pixels does not fit {padded}, an image with its padding: give more padding, or a smaller kernel or dilation"
    )]
    Kernel {
        /// Pixels from its first tap to its last.
        reach: usize,
        /// Pixels of the image with padding on both sides.
        padded: usize,
    },
    /// Sizes whose product overflows.
    #[error("convolution: {what} has more elements than memory holds: give fewer samples or channels")]
    TooLarge {
        /// Which operand.
        what: &'static str,
    },
    /// An operand of another length.
    #[error("convolution: {what}: {found} elements given, and {shape:?} takes {expected}: check the sizes")]
    Length {
        /// Which operand.
        what: &'static str,
        /// Elements it has.
        found: usize,
        /// Elements it should have.
        expected: usize,
        /// The shape it should have, in the order of memory.
        shape: Vec<usize>,
    },
}
