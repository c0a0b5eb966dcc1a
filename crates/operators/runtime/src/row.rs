//! Rows of the table of ops.

use crate::binder::Build;

/// An op and its implementation by device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Name of the op, as in `aten`.
    pub(crate) name: &'static str,
    /// Implementation on a CPU, or the reason why there is none, with the remedy.
    pub(crate) cpu: Result<Build, &'static str>,
}

/// An op with an implementation.
pub(crate) const fn runs(name: &'static str, cpu: Build) -> Row {
    Row { name, cpu: Ok(cpu) }
}

/// A known op without an implementation.
pub(crate) const fn missing(name: &'static str, instead: &'static str) -> Row {
    Row { name, cpu: Err(instead) }
}
