//! What can be wrong with a shape, strides, or a view.

use thiserror::Error;

/// Why a tensor or view cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorError {
    /// Shape and strides are not of one rank.
    #[error("shape {shape:?} and strides {strides:?} differ in rank: give one stride per dimension")]
    Rank {
        /// As asked for.
        shape: Vec<usize>,
        /// As asked for.
        strides: Vec<usize>,
    },
    /// Elements or positions exceed `usize`.
    #[error("shape {shape:?} with strides {strides:?} exceeds the address space: make it smaller")]
    TooLarge {
        /// As asked for.
        shape: Vec<usize>,
        /// As asked for; empty for a contiguous one.
        strides: Vec<usize>,
    },
    /// The last element lies outside of the storage.
    #[error(
        "shape {shape:?}, strides {strides:?} and offset {offset} reach element {last}, and the storage has {len}: \
         correct them or give more elements"
    )]
    OutOfStorage {
        /// As asked for.
        shape: Vec<usize>,
        /// As asked for.
        strides: Vec<usize>,
        /// As asked for.
        offset: usize,
        /// Position of the last element.
        last: usize,
        /// Elements of the storage.
        len: usize,
    },
    /// A vector whose length is not the product of the shape.
    #[error("{len} elements are not a tensor of shape {shape:?}, which has {expected}: correct the shape")]
    Length {
        /// As asked for.
        shape: Vec<usize>,
        /// The product of the shape.
        expected: usize,
        /// Elements given.
        len: usize,
    },
    /// No such dimension.
    #[error("there is no dimension {axis} in shape {shape:?}: choose one below {}", shape.len())]
    Axis {
        /// As asked for.
        axis: usize,
        /// Of the view.
        shape: Vec<usize>,
    },
    /// A range or index outside of a dimension.
    #[error("{start}..{end} is not inside of dimension {axis} of shape {shape:?}")]
    Range {
        /// First index.
        start: usize,
        /// One past the last.
        end: usize,
        /// The dimension.
        axis: usize,
        /// Of the view.
        shape: Vec<usize>,
    },
    /// A step of zero.
    #[error("a slice of dimension {axis} with step 0: give 1 or more")]
    Step {
        /// The dimension.
        axis: usize,
    },
    /// An order of dimensions that is no permutation.
    #[error("{order:?} is no order of the {rank} dimensions: name each of 0..{rank} once")]
    Order {
        /// As asked for.
        order: Vec<usize>,
        /// Dimensions there are.
        rank: usize,
    },
    /// A shape that does not broadcast to another.
    #[error("shape {from:?} does not broadcast to {to:?}: dimensions, from the last, must be equal or 1")]
    Broadcast {
        /// Of the view.
        from: Vec<usize>,
        /// As asked for.
        to: Vec<usize>,
    },
    /// A reshape to another number of elements.
    #[error("shape {from:?} cannot become {to:?}: the numbers of elements differ")]
    Elements {
        /// Of the view.
        from: Vec<usize>,
        /// As asked for.
        to: Vec<usize>,
    },
    /// A reshape that strides cannot express.
    #[error("shape {from:?} with strides {strides:?} cannot be seen as {to:?} without a copy: copy it first")]
    NotViewable {
        /// Of the view.
        from: Vec<usize>,
        /// Of the view.
        strides: Vec<usize>,
        /// As asked for.
        to: Vec<usize>,
    },
    /// A mutable view two of whose elements may be one place in memory.
    #[error("a mutable view of shape {shape:?} with strides {strides:?} may overlap itself: copy it first")]
    Overlap {
        /// As asked for.
        shape: Vec<usize>,
        /// As asked for.
        strides: Vec<usize>,
    },
    /// Mutable access to storage that others hold.
    #[error("the storage is shared with another tensor: use `make_mut`, which copies, or drop the other one")]
    Shared,
    /// Two tensors that must have one shape.
    #[error("shapes {left:?} and {right:?} differ")]
    Shapes {
        /// Of one.
        left: Vec<usize>,
        /// Of the other.
        right: Vec<usize>,
    },
}
