//! Errors of shapes, strides and views.

use thiserror::Error;

/// Reason why a tensor or view cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorError {
    /// Shape and strides have different ranks.
    #[error("shape {shape:?} and strides {strides:?} differ in rank: give one stride per dimension")]
    Rank {
        /// The requested shape.
        shape: Vec<usize>,
        /// The requested strides.
        strides: Vec<usize>,
    },
    /// Elements or positions exceed `usize`.
    #[error("shape {shape:?} with strides {strides:?} exceeds the address space: make it smaller")]
    TooLarge {
        /// The requested shape.
        shape: Vec<usize>,
        /// The requested strides; empty for a contiguous layout.
        strides: Vec<usize>,
    },
    /// The last element is outside of the storage.
    #[error(
        "shape {shape:?}, strides {strides:?} and offset {offset} reach element {last}, and the storage has {len}: \
         correct them or give more elements"
    )]
    OutOfStorage {
        /// The requested shape.
        shape: Vec<usize>,
        /// The requested strides.
        strides: Vec<usize>,
        /// The requested offset.
        offset: usize,
        /// Position of the last element.
        last: usize,
        /// Number of elements of the storage.
        len: usize,
    },
    /// A vector whose length is not the product of the shape.
    #[error("{len} elements are not a tensor of shape {shape:?}, which has {expected}: correct the shape")]
    Length {
        /// The requested shape.
        shape: Vec<usize>,
        /// Product of the shape.
        expected: usize,
        /// Number of elements given.
        len: usize,
    },
    /// The dimension does not exist.
    #[error("there is no dimension {axis} in shape {shape:?}: choose one below {}", shape.len())]
    Axis {
        /// The requested dimension.
        axis: usize,
        /// Shape of the view.
        shape: Vec<usize>,
    },
    /// A range or index outside of a dimension.
    #[error("{start}..{end} is not inside of dimension {axis} of shape {shape:?}")]
    Range {
        /// First index.
        start: usize,
        /// One past the last index.
        end: usize,
        /// The dimension.
        axis: usize,
        /// Shape of the view.
        shape: Vec<usize>,
    },
    /// A step of zero.
    #[error("a slice of dimension {axis} with step 0: give 1 or more")]
    Step {
        /// The dimension.
        axis: usize,
    },
    /// An order of dimensions that is not a permutation.
    #[error("{order:?} is not an order of the {rank} dimensions: name each of 0..{rank} once")]
    Order {
        /// The requested order.
        order: Vec<usize>,
        /// Number of dimensions.
        rank: usize,
    },
    /// A shape that does not broadcast to another.
    #[error("shape {from:?} does not broadcast to {to:?}: dimensions, from the last, must be equal or 1")]
    Broadcast {
        /// Shape of the view.
        from: Vec<usize>,
        /// The requested shape.
        to: Vec<usize>,
    },
    /// A reshape to another number of elements.
    #[error("shape {from:?} cannot become {to:?}: the numbers of elements differ")]
    Elements {
        /// Shape of the view.
        from: Vec<usize>,
        /// The requested shape.
        to: Vec<usize>,
    },
    /// A reshape that strides cannot express.
    #[error("shape {from:?} with strides {strides:?} cannot be seen as {to:?} without a copy: copy it first")]
    NotViewable {
        /// Shape of the view.
        from: Vec<usize>,
        /// Strides of the view.
        strides: Vec<usize>,
        /// The requested shape.
        to: Vec<usize>,
    },
    /// A mutable view in which two elements may share one place in memory.
    #[error("a mutable view of shape {shape:?} with strides {strides:?} may overlap itself: copy it first")]
    Overlap {
        /// The requested shape.
        shape: Vec<usize>,
        /// The requested strides.
        strides: Vec<usize>,
    },
    /// Mutable access to storage that other tensors share.
    #[error("the storage is shared with another tensor: use `make_mut`, which copies, or drop the other one")]
    Shared,
    /// Two tensors whose shapes must be equal differ.
    #[error("shapes {left:?} and {right:?} differ")]
    Shapes {
        /// Shape of the first.
        left: Vec<usize>,
        /// Shape of the second.
        right: Vec<usize>,
    },
}
