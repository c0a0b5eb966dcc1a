//! What can go wrong with device profiles.

use std::path::PathBuf;

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
    #[error("{} is not a usable device profile: {what}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong, and the remedy.
        what: String,
    },
    /// The models are not ones this version can use.
    #[error("{} does not hold usable models: {what}; fit the profile again with `steptime device fit`", path.display())]
    Models {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The specification of the GPU has a value that cannot be.
    #[error("the specification of {name} is not usable: {what}")]
    Spec {
        /// The GPU.
        name: String,
        /// Which field, and why.
        what: String,
    },
    /// Nothing to fit on, or something that cannot be fitted.
    #[error("cannot fit a device profile: {0}")]
    Fit(String),
}
