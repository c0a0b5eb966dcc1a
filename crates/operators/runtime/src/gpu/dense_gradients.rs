//! Dense gradients of several tables on a GPU.

use steptime_cuda::embedding::{DenseGradients, Ints, Lookups, Sizes};
use steptime_cuda::{Float, Slice, SliceMut};
use steptime_ops::embedding::Pooling;

use super::slices::GpuSlices;
use super::work::{Gpu, GpuWork};
use crate::arg::Arg;
use crate::error::Failure;

/// Operands of dense gradients.
#[derive(Debug)]
pub(crate) struct DenseGradientArgs {
    /// Gradient of the bags, `[bags, columns of all tables]`.
    pub(crate) gradient: Arg,
    pub(crate) indices: Arg,
    pub(crate) offsets: Arg,
    /// Results: the gradient of each table.
    pub(crate) to: Vec<Arg>,
}

/// The dense gradients of tables from those of their bags, with elements `G`.
#[derive(Debug)]
pub(crate) struct GpuDenseGradients<G> {
    args: DenseGradientArgs,
    pooling: Pooling,
    /// Largest number of lookups of a table.
    longest: usize,
    work: Option<DenseGradients<G>>,
}

impl<G: Float> GpuDenseGradients<G> {
    pub(crate) fn new(args: DenseGradientArgs, pooling: Pooling, longest: usize) -> GpuDenseGradients<G> {
        GpuDenseGradients { args, pooling, longest, work: None }
    }

    fn lookups<'a>(&self, memory: &GpuSlices<'a>) -> Result<Lookups<'a>, Failure> {
        let [indices, offsets] = [&self.args.indices, &self.args.offsets].map(|arg| arg.device_row(memory));
        Ok(Lookups::new(self.args.gradient.shape()[0], Ints::I64(indices?), Ints::I64(offsets?))?)
    }
}

impl<G: Float> GpuWork for GpuDenseGradients<G> {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let sizes = Sizes::from_lookups(&self.lookups(&gpu.memory)?, self.args.gradient.layout.strides()[0]);
        let shapes: Vec<[usize; 2]> = self.args.to.iter().map(|to| [to.shape()[0], to.shape()[1]]).collect();
        self.work = Some(DenseGradients::new(gpu.stream, shapes, sizes, self.longest, self.pooling)?);
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let lookups = self.lookups(&gpu.memory)?;
        let DenseGradientArgs { gradient, indices, offsets, to } = &self.args;
        let Some(work) = &mut self.work else { return Ok(()) };
        work.group(gpu.stream, &lookups)?;
        gpu.end_part(&[indices, offsets], &[], None)?;
        let mut gradients: Vec<SliceMut<'_, f32>> = Vec::with_capacity(to.len());
        for to in to {
            gradients.push(to.device_row_mut(&mut gpu.memory)?);
        }
        work.clear(gpu.stream, &gradients)?;
        gpu.end_part(&[], &to.iter().collect::<Vec<_>>(), None)?;
        let all: Slice<'_, G> = gradient.device(&gpu.memory)?;
        let rows = all.slice(gradient.layout.offset()..all.len());
        Ok(work.add(gpu.stream, &lookups, rows, gradients)?)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let lookups = self.lookups(&gpu.memory)?;
        let Some(work) = &self.work else { return Ok(()) };
        Ok(work.check(gpu.stream, &lookups)?)
    }
}
