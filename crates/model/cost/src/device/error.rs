//! What can go wrong with device profiles.

use std::path::PathBuf;

use super::fit::FitError;
use super::profile::error::{HeaderError, ModelsError};
use super::profile::file::HEADER;
use super::spec::SpecError;

/// Why a device profile could not be fitted, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The header is not one this version can use.
    #[error("{} is not a usable device profile: {source}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong, and the remedy.
        source: HeaderError,
    },
    /// What models are worth on other GPUs cannot be read.
    #[error("transfer.toml is not usable: {0}")]
    Transfer(HeaderError),
    /// The place to write to is taken by something else.
    #[error("cannot write a profile to {}: it exists and holds no {HEADER}; choose another name", path.display())]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// The profile could not be read again if it were written.
    #[error(
        "nothing is written to {}, for it could not be read again ({source}): the rows are too few or out of all \
         range, measure for longer", path.display()
    )]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: Box<Error>,
    },
    /// The models are not ones this version can use.
    #[error("{} does not hold usable models: {source}; fit the profile again with `steptime device fit`", path.display())]
    Models {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ModelsError,
    },
    /// The specification of the GPU has a value that cannot be.
    #[error("the specification of {name} is not usable: {source}")]
    Spec {
        /// The GPU.
        name: String,
        /// Which field, and why.
        source: SpecError,
    },
    /// Nothing to fit on, or something that cannot be fitted.
    #[error("cannot fit a device profile: {0}")]
    Fit(#[from] FitError),
}
