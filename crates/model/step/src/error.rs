//! What can be wrong with a change of a step.

use crate::ids::OpId;

/// Why a patch is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It names an op that the step does not have.
    #[error("the step has no op {}", op.0)]
    NoSuchOp {
        /// The op.
        op: OpId,
    },
    /// It puts an op beside one that does not run.
    #[error("nothing can stand beside {op}, which does not run in this step any more")]
    NotRunning {
        /// The op's name.
        op: String,
    },
    /// A tensor is taken that no op makes any more.
    #[error("{op} takes a tensor of shape {shape:?} that no op makes any more")]
    Dangling {
        /// The op that takes it.
        op: String,
        /// The tensor's shape.
        shape: Vec<i64>,
    },
    /// A tensor is made twice.
    #[error("{op} makes a tensor of shape {shape:?} that another op makes, too")]
    MadeTwice {
        /// The op that makes it again.
        op: String,
        /// The tensor's shape.
        shape: Vec<i64>,
    },
    /// An op takes what is made after it.
    #[error("{op} takes a tensor of shape {shape:?} before it is made")]
    Early {
        /// The op that takes it.
        op: String,
        /// The tensor's shape.
        shape: Vec<i64>,
    },
    /// What an op gives does not follow from what it takes.
    #[error("{op} would give {expected:?}, and not {found:?}")]
    Shapes {
        /// The op.
        op: String,
        /// What follows from its arguments.
        expected: Vec<i64>,
        /// What the patch says.
        found: Vec<i64>,
    },
    /// Host threads wait for one another in a circle.
    #[error("the threads wait for one another at {op}: the change makes a circle")]
    Circle {
        /// The first op that is never reached.
        op: String,
    },
    /// An op takes tensors of both host and device.
    #[error("{op} takes tensors of the host and of the device")]
    Devices {
        /// The op.
        op: String,
    },
}
