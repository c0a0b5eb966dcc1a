//! Errors of host profiles and probes.

use std::path::PathBuf;

use super::versions;

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

/// Reason why a text is not a host profile that this version can use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The text is not TOML, or a field is missing, unknown or of another type. The message names line and field.
    #[error("{0}")]
    Toml(#[source] Box<toml::de::Error>),
    /// The text has no version.
    #[error("no `version`: not a host profile")]
    NoVersion,
    /// The text is of another version.
    #[error("version {0}, but this steptime reads version {version}", version = versions::PROFILE)]
    Version(u32),
    /// A number is negative, infinite or not a number.
    #[error("{field} is {value}, and must be a number of 0 or more")]
    Number {
        /// Field, with its table.
        field: String,
        value: f64,
    },
    /// The points of copies do not rise in size, or one has an impossible time.
    #[error("`staged_copy_us` must hold rising sizes, each with a time of 0 or more")]
    Copies,
}

/// Reason why the file of a probe is not usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The probe is of another version.
    #[error("probe of version {0}, but this steptime reads version {version}", version = versions::PROBE)]
    Version(i64),
    /// The version is not a whole number.
    #[error("`probe_version` is not a whole number: measure the host again with `python -m steptime.probe`")]
    NoVersion,
    /// The probe lacks the pieces that only a machine with a GPU can measure.
    #[error("the probe has no launches, hand-offs or copies: measure it on the machine with the GPU")]
    Incomplete,
}
