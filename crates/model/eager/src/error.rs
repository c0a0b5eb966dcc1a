//! What can be wrong with a description.

use std::path::PathBuf;

/// Why a file describes no model.
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
    /// What is in it is no description of a model.
    #[error("{}: {source}", path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Problem,
    },
}

/// What is wrong with a description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not TOML, or has a key or value that no model has.
    #[error("{text}{}", nearest.as_ref().map_or_else(String::new, |name| format!("did you mean `{name}`?\n")))]
    Toml {
        /// What TOML's reader says, with the line.
        text: String,
        /// The known word that is nearly the one found.
        nearest: Option<String>,
    },
    /// A number that cannot be.
    #[error("`{key}` is {found}: {wanted}")]
    Number {
        /// The key.
        key: String,
        /// Its value.
        found: i64,
        /// What it may be.
        wanted: &'static str,
    },
    /// A key that the model needs is missing.
    #[error("a {model} model needs `{key}`: {wanted}")]
    Missing {
        /// The model.
        model: &'static str,
        /// The key.
        key: &'static str,
        /// What it is.
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
    /// Keys that do not go together.
    #[error("{0}")]
    Conflict(String),
}
