//! Errors of changes of a step.

use crate::ids::OpId;

/// Reason why a patch is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The patch names an op that the step does not have.
    #[error("the step has no op {}", op.0)]
    NoSuchOp {
        /// The op.
        op: OpId,
    },
    /// The patch inserts an op next to one that does not run.
    #[error("cannot insert next to {op}: it no longer runs in this step")]
    NotRunning {
        /// The op's name.
        op: String,
    },
    /// An op takes a tensor that no op makes any more.
    #[error("{op} takes a tensor of shape {shape:?} that no op makes any more")]
    Dangling {
        /// The op that takes it.
        op: String,
        /// The tensor's shape.
        shape: Vec<i64>,
    },
    /// Two ops make the same tensor.
    #[error("{op} makes a tensor of shape {shape:?} that another op also makes")]
    MadeTwice {
        /// The second op that makes it.
        op: String,
        /// The tensor's shape.
        shape: Vec<i64>,
    },
    /// An op takes a tensor that is made later.
    #[error("{op} takes a tensor of shape {shape:?} before it is made")]
    Early {
        /// The op that takes it.
        op: String,
        /// The tensor's shape.
        shape: Vec<i64>,
    },
    /// The outputs of an op do not follow from its inputs.
    #[error("{op} has an output of shape {found:?} in the patch, but its inputs imply {expected:?}")]
    Shapes {
        /// The op.
        op: String,
        /// Shape derived from the arguments.
        expected: Vec<i64>,
        /// Shape in the patch.
        found: Vec<i64>,
    },
    /// Host threads wait for one another in a cycle.
    #[error("the threads wait for one another at {op}: the change creates a cycle of waits")]
    Circle {
        /// The first op that is never reached.
        op: String,
    },
    /// An op takes both host and device tensors.
    #[error("{op} takes both host and device tensors")]
    Devices {
        /// The op.
        op: String,
    },
}
