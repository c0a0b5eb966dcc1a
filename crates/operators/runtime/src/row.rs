//! Rows of the table of ops.

use crate::binder::Build;

/// An op and its implementation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Name of the op, as in `aten`.
    pub(crate) name: &'static str,
    /// Implementation on all devices, or the reason why there is none, with the remedy.
    pub(crate) build: Result<Build, &'static str>,
}

/// An op that runs on all devices.
pub(crate) const fn runs(name: &'static str, build: Build) -> Row {
    Row { name, build: Ok(build) }
}

/// A known op without an implementation.
pub(crate) const fn missing(name: &'static str, instead: &'static str) -> Row {
    Row { name, build: Err(instead) }
}
