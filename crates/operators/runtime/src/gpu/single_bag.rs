//! Embedding bags of one table on a GPU, and its dense gradient.

use steptime_cuda::Buffer;
use steptime_cuda::embedding::{BagSizes, DenseGradient, Forward, Ints, Lookups, OffsetsFromSizes, Sizes};
use steptime_ops::embedding::{Bounds, Pooling};

use super::row_update::find_tables;
use super::work::{Gpu, GpuWork};
use crate::arg::Arg;
use crate::error::Failure;

/// Operands of the bags of one table.
#[derive(Debug)]
pub(crate) struct SingleBagArgs {
    pub(crate) weight: Arg,
    pub(crate) indices: Arg,
    /// First lookup of each bag.
    pub(crate) offsets: Arg,
    /// Results: pooled rows, bag of each lookup, lookups of each bag.
    pub(crate) pooled: Arg,
    pub(crate) bag: Arg,
    pub(crate) size: Arg,
}

/// The pooled rows of the bags of one table, with their sizes.
#[derive(Debug)]
pub(crate) struct GpuSingleBag {
    args: SingleBagArgs,
    name: [String; 1],
    pooling: Pooling,
    prepared: Option<Prepared>,
}

#[derive(Debug)]
struct Prepared {
    sizes: BagSizes,
    sums: OffsetsFromSizes,
    /// Offsets with the end of the last bag.
    offsets: Buffer<i64>,
    forward: Forward,
}

impl GpuSingleBag {
    pub(crate) fn new(args: SingleBagArgs, name: String, pooling: Pooling) -> GpuSingleBag {
        GpuSingleBag { args, name: [name], pooling, prepared: None }
    }
}

impl GpuWork for GpuSingleBag {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let tables =
            find_tables(std::slice::from_ref(&self.args.weight), &self.name, self.pooling, &gpu.memory)?;
        let (bags, device) = (self.args.offsets.len(), gpu.stream.device());
        let offsets = Buffer::zeros(gpu.stream, bags + 1)?;
        let indices = self.args.indices.device_row(&gpu.memory)?;
        let lookups = Lookups::new(bags, Ints::I64(indices), Ints::I64(offsets.as_ref()))?;
        let sizes = Sizes::from_lookups(&lookups, tables.columns());
        let forward = Forward::new(device, &tables, sizes, Bounds::Error)?;
        let (sizes, sums) = (BagSizes::new(device)?, OffsetsFromSizes::new(device)?);
        self.prepared = Some(Prepared { sizes, sums, offsets, forward });
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let Some(Prepared { sizes, sums, offsets, forward }) = &mut self.prepared else { return Ok(()) };
        let tables =
            find_tables(std::slice::from_ref(&self.args.weight), &self.name, self.pooling, &gpu.memory)?;
        let [indices, starts] =
            [&self.args.indices, &self.args.offsets].map(|arg| arg.device_row(&gpu.memory));
        let bags = self.args.offsets.len();
        let mut bag = self.args.bag.device_row_mut(&mut gpu.memory)?;
        let mut size = self.args.size.device_row_mut(&mut gpu.memory)?;
        sizes.run(gpu.stream, starts?, &mut bag, &mut size)?;
        sums.run(gpu.stream, size.as_ref(), &mut offsets.as_mut())?;
        let lookups = Lookups::new(bags, Ints::I64(indices?), Ints::I64(offsets.as_ref()))?;
        let mut pooled = self.args.pooled.device_row_mut(&mut gpu.memory)?;
        Ok(forward.run(gpu.stream, &tables, &lookups, &mut pooled)?)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let Some(Prepared { offsets, forward, .. }) = &mut self.prepared else { return Ok(()) };
        let tables =
            find_tables(std::slice::from_ref(&self.args.weight), &self.name, self.pooling, &gpu.memory)?;
        let indices = self.args.indices.device_row(&gpu.memory)?;
        let lookups = Lookups::new(self.args.offsets.len(), Ints::I64(indices), Ints::I64(offsets.as_ref()))?;
        forward.check(gpu.stream, &tables, &lookups)?;
        Ok(())
    }
}

/// The dense gradient of a table.
#[derive(Debug)]
pub(crate) struct GpuDenseGradient {
    pub(crate) gradient: Arg,
    pub(crate) indices: Arg,
    /// Lookups of each bag.
    pub(crate) sizes: Arg,
    pub(crate) to: Arg,
    pub(crate) pooling: Pooling,
    pub(crate) work: Option<DenseGradient>,
}

impl GpuWork for GpuDenseGradient {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let shape = [self.to.shape()[0], self.to.shape()[1]];
        let (bags, lookups) = (self.sizes.len(), self.indices.len());
        self.work = Some(DenseGradient::new(gpu.stream, shape, bags, lookups, self.pooling)?);
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let Some(work) = &mut self.work else { return Ok(()) };
        let [indices, sizes] = [&self.indices, &self.sizes].map(|arg| arg.device_row(&gpu.memory));
        let gradient = self.gradient.device_row(&gpu.memory)?;
        let mut to = self.to.device_row_mut(&mut gpu.memory)?;
        Ok(work.run(gpu.stream, indices?, sizes?, gradient, &mut to)?)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let Some(work) = &mut self.work else { return Ok(()) };
        Ok(work.check(gpu.stream, self.indices.device_row(&gpu.memory)?)?)
    }
}
