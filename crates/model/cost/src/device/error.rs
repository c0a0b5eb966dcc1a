//! Errors of device profiles.

use std::path::PathBuf;

use super::fit::FitError;
use super::profile::error::{HeaderError, ModelsError};
use super::profile::file::HEADER;
use super::spec::SpecError;

/// Reason why a device profile could not be fitted, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// File or folder.
        path: PathBuf,
        source: std::io::Error,
    },
    /// This version cannot use the header.
    #[error("{} is not a usable device profile: {source}", path.display())]
    Header {
        path: PathBuf,
        /// Defect, and the remedy.
        source: HeaderError,
    },
    /// The transfer errors of models on other GPUs cannot be read.
    #[error("profiles/transfer/worth.toml is not usable: {0}")]
    Transfer(HeaderError),
    /// The output folder is in use by other files.
    #[error("cannot write a profile to {}: it exists and holds no {HEADER}; choose another name", path.display())]
    Taken { path: PathBuf },
    /// The profile could not be read again if it were written.
    #[error(
        "nothing is written to {}: the profile could not be read back ({source}), as the sweep has too few rows or impossible times; \
         measure for longer", path.display()
    )]
    Unusable {
        path: PathBuf,
        /// Reason.
        source: Box<Error>,
    },
    /// This version cannot use the models.
    #[error("{} does not hold usable models: {source}; fit the profile again with `steptime device fit`", path.display())]
    Models {
        path: PathBuf,
        /// Defect.
        source: ModelsError,
    },
    /// The specification of the GPU has an impossible value.
    #[error("the specification of {name} is not usable: {source}")]
    Spec {
        name: String,
        /// Field and reason.
        source: SpecError,
    },
    /// No data to fit on, or data that cannot be fitted.
    #[error("cannot fit a device profile: {0}")]
    Fit(#[from] FitError),
}
