//! Errors in a convolution's sizes and operands.

use thiserror::Error;

/// Reason why a convolution cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConvolutionError {
    /// A size of zero.
    #[error("convolution: {what} is 0: give at least 1")]
    Zero {
        /// Name of the size.
        what: &'static str,
    },
    /// Channels that cannot be divided into the groups.
    #[error(
        "convolution: {groups} groups do not divide {inputs} input and {outputs} output channels: give a divisor of both"
    )]
    Groups {
        /// Number of groups requested.
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
        /// Number of pixels from its first tap to its last.
        reach: usize,
        /// Number of pixels of the image with padding on both sides.
        padded: usize,
    },
    /// Sizes whose product overflows.
    #[error("convolution: {what} has more elements than memory holds: give fewer samples or channels")]
    TooLarge {
        /// Name of the operand.
        what: &'static str,
    },
    /// An operand with a wrong number of elements.
    #[error("convolution: {what}: {found} elements given, and {shape:?} takes {expected}: check the sizes")]
    Length {
        /// Name of the operand.
        what: &'static str,
        /// Number of elements it has.
        found: usize,
        /// Number of elements it should have.
        expected: usize,
        /// The shape it should have, in the order of memory.
        shape: Vec<usize>,
    },
}
