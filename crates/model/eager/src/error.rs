//! Errors of descriptions.

use std::path::PathBuf;

/// Reason why a file does not describe a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The content is not a description of a model.
    #[error("{}: {source}", path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// The error in the description.
        source: Problem,
    },
}

/// An error in a description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not TOML, or has a key or value that no model has.
    #[error("{text}{}", nearest.as_ref().map_or_else(String::new, |name| format!("did you mean `{name}`?\n")))]
    Toml {
        /// Message of the TOML parser, with the line.
        text: String,
        /// The known word most similar to the one found.
        nearest: Option<String>,
    },
    /// Number out of range.
    #[error("`{key}` is {found}: {wanted}")]
    Number {
        /// The key.
        key: String,
        /// Its value.
        found: i64,
        /// Condition on the value.
        wanted: &'static str,
    },
    /// A key that the model needs is missing.
    #[error("a {model} model needs `{key}`: {wanted}")]
    Missing {
        /// The model.
        model: &'static str,
        /// The key.
        key: &'static str,
        /// Meaning of the key.
        wanted: &'static str,
    },
    /// A key that the model does not have.
    #[error("a {model} model has no `{key}`: leave it out")]
    Foreign {
        /// The model.
        model: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Keys that contradict each other.
    #[error("{0}")]
    Conflict(String),
}
