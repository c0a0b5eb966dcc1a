//! The slope of a ReLU, and sums of columns, of 16-bit floats on a GPU.

use crate::binder::{Built, Refusal};
use crate::error::Failure;
use crate::gpu::{Gpu, GpuSlope, GpuWork};
use crate::kernel::Kernel;

impl GpuWork for GpuSlope {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.compile(gpu)
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.run(gpu).map(|_| ())
    }
}

/// The pass as an instruction.
pub(super) fn on_gpu(slope: GpuSlope) -> Result<Built, Refusal> {
    if slope.fits() {
        return Ok(Built::Kernel(Kernel::Gpu(Box::new(slope))));
    }
    Err("its matrices are not stored by rows, or its sums are not in 32 bits: leave out rules that change types".to_owned())
}
