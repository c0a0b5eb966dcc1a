//! Embedding bags of several tables on a GPU.

use steptime_cuda::Float;
use steptime_cuda::embedding::{Forward, Ints, Lookups, Sizes};
use steptime_ops::embedding::{Bounds, Pooling};

use super::row_update::find_tables;
use super::slices::GpuSlices;
use super::work::{Gpu, GpuWork, TableUse};
use crate::arg::Arg;
use crate::error::Failure;

/// Operands of bags.
#[derive(Debug)]
pub(crate) struct BagArgs {
    pub(crate) tables: Vec<Arg>,
    pub(crate) indices: Arg,
    pub(crate) offsets: Arg,
    /// Result, `[bags, columns of all tables]`.
    pub(crate) to: Arg,
}

/// The pooled rows of all bags, as elements `D`.
#[derive(Debug)]
pub(crate) struct GpuBags<D> {
    args: BagArgs,
    names: Vec<String>,
    pooling: Pooling,
    /// Number of the row cache of its tables.
    cache: Option<usize>,
    forward: Option<Forward<D>>,
}

impl<D: Float> GpuBags<D> {
    pub(crate) fn new(args: BagArgs, names: Vec<String>, pooling: Pooling) -> GpuBags<D> {
        GpuBags { args, names, pooling, cache: None, forward: None }
    }

    fn lookups<'a>(&self, memory: &GpuSlices<'a>) -> Result<Lookups<'a>, Failure> {
        let [indices, offsets] = [&self.args.indices, &self.args.offsets].map(|arg| arg.device_row(memory));
        Ok(Lookups::new(self.args.to.shape()[0], Ints::I64(indices?), Ints::I64(offsets?))?)
    }
}

impl<D: Float> GpuWork for GpuBags<D> {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let (device, stride) = (gpu.stream.device(), self.args.to.layout.strides()[0]);
        let forward = match self.cache {
            Some(at) => {
                let cache = gpu.caches.cache(at);
                Forward::new(device, cache.tables(), cache.sizes(stride), Bounds::Error)
            }
            None => {
                let tables = find_tables(&self.args.tables, &self.names, self.pooling, &gpu.memory)?;
                let sizes = Sizes::from_lookups(&self.lookups(&gpu.memory)?, stride);
                Forward::new(device, &tables, sizes, Bounds::Error)
            }
        };
        self.forward = Some(forward?);
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let lookups = self.lookups(&gpu.memory)?;
        let (_, mut to) = self.args.to.device_mut(&mut gpu.memory)?.split_at(self.args.to.layout.offset());
        let Some(forward) = &self.forward else { return Ok(()) };
        if let Some(at) = self.cache {
            let batch = gpu.caches.cache(at).batch_of_copy(&lookups)?;
            return Ok(forward.run(gpu.stream, batch.tables, &batch.lookups, &mut to)?);
        }
        let tables = find_tables(&self.args.tables, &self.names, self.pooling, &gpu.memory)?;
        Ok(forward.run(gpu.stream, &tables, &lookups, &mut to)?)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        if self.cache.is_some() {
            // The cache has checked the batch.
            return Ok(());
        }
        let tables = find_tables(&self.args.tables, &self.names, self.pooling, &gpu.memory)?;
        let lookups = self.lookups(&gpu.memory)?;
        let Some(forward) = &mut self.forward else { return Ok(()) };
        forward.check(gpu.stream, &tables, &lookups)?;
        Ok(())
    }

    fn table_use(&self) -> Option<TableUse<'_>> {
        let BagArgs { tables, indices, offsets, to } = &self.args;
        let (names, pooling, bags) = (&self.names, self.pooling, to.shape()[0]);
        Some(TableUse { tables, names, indices, offsets, pooling, bags })
    }

    fn use_cache(&mut self, cache: usize) {
        self.cache = Some(cache);
    }
}
