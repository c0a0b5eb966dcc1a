//! Work that only copies elements.

use super::work::{Gpu, GpuWork};
use crate::arg::Arg;
use crate::error::Failure;
use crate::kernel::Kernel;

/// Work that copies tensors to others of the same shape and type.
struct Copies {
    work: Box<dyn GpuWork>,
    copies: Vec<(Arg, Arg)>,
}

/// A kernel that does nothing else than these copies.
pub(crate) fn copies(kernel: Kernel, copies: Vec<(Arg, Arg)>) -> Kernel {
    match kernel {
        Kernel::Gpu(work) => Kernel::Gpu(Box::new(Copies { work, copies })),
        other => other,
    }
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
