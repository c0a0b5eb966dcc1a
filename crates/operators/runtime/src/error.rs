//! Errors of compiling and running a step.

use std::io;

use crate::target::Target;

/// Reason for a failed operation of a kernel.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Reason why a step cannot be compiled or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording of the model has no steps, or its threads wait for one another.
    #[error("the step cannot be put in order: {why}")]
    Order {
        /// Reason.
        why: String,
    },
    /// An op without an implementation.
    #[error("{op} in {place} cannot run on {target}: {why}")]
    Op {
        /// Name of the op.
        op: String,
        /// Enclosing modules and functions.
        place: String,
        /// Device of the program.
        target: Target,
        /// Reason, and the remedy.
        why: String,
    },
    /// Not enough memory.
    #[error("{bytes} bytes for {what} cannot be allocated: {source}; use a smaller batch or smaller tables")]
    Memory {
        /// Purpose of the memory.
        what: &'static str,
        /// Number of bytes.
        bytes: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// The GPU failed, or has not enough memory.
    #[error(transparent)]
    Gpu(#[from] steptime_cuda::Error),
    /// A batch whose rows do not fit the row caches of tables in host memory.
    #[error(transparent)]
    RowCache(steptime_cuda::Error),
    /// An op failed while the step ran.
    #[error("{op} in {place} failed: {source}")]
    Run {
        /// Name of the op.
        op: String,
        /// Enclosing modules and functions.
        place: String,
        /// Reason.
        source: Failure,
    },
    /// A table that is placed in a way that no program trains.
    #[error("table {table}: {why}")]
    Placement {
        /// The table.
        table: usize,
        /// Reason, and the remedy.
        why: &'static str,
    },
    /// Another rank of the job failed or ended.
    #[error("rank {rank} failed: {why}")]
    Rank {
        /// The rank.
        rank: usize,
        /// Reason.
        why: String,
    },
    /// A name that no tensor has.
    #[error("no {what} is named `{name}`; there are {known}")]
    Name {
        /// Kind of tensor.
        what: &'static str,
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// Values of another number or type.
    #[error("`{name}` takes {needed}, not {given}")]
    Values {
        /// Name of the tensor.
        name: String,
        /// Number and type of its elements.
        needed: String,
        /// Number and type of the given values.
        given: String,
    },
    /// Offsets of bags that do not increase, or exceed the number of lookups.
    #[error(
        "offset {at} of `{name}` is {value}: offsets begin at 0 and increase up to {lookups}, the number of lookups"
    )]
    Offset {
        /// Name of the input.
        name: String,
        /// Position of the offset.
        at: usize,
        /// Its value.
        value: i64,
        /// Number of lookups.
        lookups: usize,
    },
    /// A setting out of range.
    #[error("{name} is {value}: {needed}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Condition on the value.
        needed: &'static str,
    },
}
