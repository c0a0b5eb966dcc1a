//! Why a profile could not be fitted.

use steptime_trace::Nanos;

use crate::device::learn::error::LearnError;
use crate::device::profile::error::ModelsError;

/// Why a device profile could not be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// There are no rows at all.
    #[error("there are no measured kernels")]
    NoRows,
    /// A row has a time of zero or less.
    #[error("case {case}, {op}: a time of {time}; times must be positive")]
    Time {
        /// The row's case.
        case: u32,
        /// Its op.
        op: String,
        /// Its time.
        time: Nanos,
    },
    /// The models of a family could not be learnt.
    #[error("{family}: {source}")]
    Family {
        /// The family.
        family: String,
        /// Why not.
        source: LearnError,
    },
    /// What was fitted does not fit together.
    #[error(transparent)]
    Models(#[from] ModelsError),
}
