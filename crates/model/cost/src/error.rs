//! Errors of profiles.

use std::path::PathBuf;

use crate::host::error::ProfileError;

/// Reason why a profile could not be read or fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error(
        "cannot read the profile {}: {source}; --host takes `own`, `default`, a profile or probe file, or a recording \
         with a probe", path.display()
    )]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is not a profile that this version can use.
    #[error("{} is not a usable host profile: {source}; make one with `steptime host fit`", path.display())]
    Profile {
        path: PathBuf,
        /// Defect.
        source: ProfileError,
    },
    /// No data to fit on.
    #[error("nothing to fit on: no recording has a measured step")]
    NothingToFit,
}
