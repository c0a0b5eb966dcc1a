//! Rows of the table of ops.

use crate::binder::Build;
use crate::target::Target;

/// An op and its implementation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Name of the op, as in `aten`.
    pub(crate) name: &'static str,
    /// Implementation, or the reason why there is none, with the remedy.
    build: Result<Build, &'static str>,
    /// The reason why it does not run on a GPU.
    not_on_gpu: Option<&'static str>,
}

impl Row {
    /// The implementation on a device, or the reason why there is none, with the remedy.
    pub(crate) fn build(&self, target: Target) -> Result<Build, &'static str> {
        match (target, self.not_on_gpu) {
            (Target::Cuda, Some(why)) => Err(why),
            _ => self.build,
        }
    }
}

/// An op that runs on all devices.
pub(crate) const fn runs(name: &'static str, build: Build) -> Row {
    Row { name, build: Ok(build), not_on_gpu: None }
}

/// A known op without an implementation.
pub(crate) const fn missing(name: &'static str, instead: &'static str) -> Row {
    Row { name, build: Err(instead), not_on_gpu: None }
}

impl Row {
    /// The same op on a CPU alone.
    pub(crate) const fn on_cpu_alone(self, why: &'static str) -> Row {
        Row { not_on_gpu: Some(why), ..self }
    }
}
