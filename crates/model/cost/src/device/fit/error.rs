//! Errors of fits.

use steptime_trace::Nanos;

use crate::device::learn::error::LearnError;
use crate::device::profile::error::ModelsError;

/// Reason why a device profile could not be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// There are no rows at all.
    #[error("there are no measured kernels")]
    NoRows,
    /// A row has a time of zero or less.
    #[error("case {case}, {op}: a time of {time}; times must be positive")]
    Time { case: u32, op: String, time: Nanos },
    /// The models of a family could not be learnt.
    #[error("{family}: {source}")]
    Family {
        family: String,
        /// Reason.
        source: LearnError,
    },
    /// The fitted models are inconsistent.
    #[error(transparent)]
    Models(#[from] ModelsError),
}
