//! Work that only copies elements.

use super::work::{Gpu, GpuWork};
use crate::arg::Arg;
use crate::error::Failure;

/// Work that does nothing else than copy tensors to others of the same shape and type.
pub(crate) struct Copies {
    pub(crate) work: Box<dyn GpuWork>,
    pub(crate) copies: Vec<(Arg, Arg)>,
}

impl GpuWork for Copies {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.work.prepare(gpu)
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.work.launch(gpu)
    }

    fn copies(&self) -> Option<Vec<(Arg, Arg)>> {
        Some(self.copies.clone())
    }
}
