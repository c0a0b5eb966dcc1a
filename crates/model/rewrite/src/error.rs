//! Why a rule does not apply.

/// Why a rule does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What it made is no step.
    #[error(transparent)]
    Patch(#[from] steptime_step::Error),
    /// There is nothing that it could change.
    #[error("{rule}: {reason}")]
    NothingToDo {
        /// The rule.
        rule: &'static str,
        /// What it looked for, and what there is instead.
        reason: String,
    },
    /// A batch that is none.
    #[error("a batch of {0}: it must be at least 1")]
    Batch(u64),
    /// The recording does not say its batch.
    #[error("the batch that was recorded is not known: say it with --batch-dim, or record with steptime")]
    NoBatch,
    /// No tensor has a dimension that is a multiple of the batch.
    #[error(
        "no input of the step has a dimension of {batch}: name one that grows with the batch with --batch-dim"
    )]
    NoBatchDim {
        /// The batch.
        batch: u64,
    },
    /// A size that cannot be scaled.
    #[error("{op} has a dimension of {size}, which is no multiple of {batch} samples")]
    Uneven {
        /// The op.
        op: String,
        /// The size.
        size: i64,
        /// The batch.
        batch: u64,
    },
}
