//! Embedding bags of several tables on a GPU.

use steptime_cuda::embedding::{Forward, Ints, Lookups, Sizes};
use steptime_ops::embedding::{Bounds, Pooling};

use super::row_update::find_tables;
use super::slices::GpuSlices;
use super::work::{Gpu, GpuWork};
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

/// The pooled rows of all bags.
#[derive(Debug)]
pub(crate) struct GpuBags {
    args: BagArgs,
    names: Vec<String>,
    pooling: Pooling,
    forward: Option<Forward>,
}

impl GpuBags {
    pub(crate) fn new(args: BagArgs, names: Vec<String>, pooling: Pooling) -> GpuBags {
        GpuBags { args, names, pooling, forward: None }
    }

    fn lookups<'a>(&self, memory: &GpuSlices<'a>) -> Result<Lookups<'a>, Failure> {
        let [indices, offsets] = [&self.args.indices, &self.args.offsets].map(|arg| arg.device_row(memory));
        Ok(Lookups::new(self.args.to.shape()[0], Ints::I64(indices?), Ints::I64(offsets?))?)
    }
}

impl GpuWork for GpuBags {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let tables = find_tables(&self.args.tables, &self.names, self.pooling, &gpu.memory)?;
        let sizes = Sizes::from_lookups(&self.lookups(&gpu.memory)?, self.args.to.layout.strides()[0]);
        self.forward = Some(Forward::new(gpu.stream.device(), &tables, sizes, Bounds::Error)?);
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let tables = find_tables(&self.args.tables, &self.names, self.pooling, &gpu.memory)?;
        let lookups = self.lookups(&gpu.memory)?;
        let (_, mut to) = self.args.to.device_mut(&mut gpu.memory)?.split_at(self.args.to.layout.offset());
        let Some(forward) = &self.forward else { return Ok(()) };
        Ok(forward.run(gpu.stream, &tables, &lookups, &mut to)?)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let tables = find_tables(&self.args.tables, &self.names, self.pooling, &gpu.memory)?;
        let lookups = self.lookups(&gpu.memory)?;
        let Some(forward) = &mut self.forward else { return Ok(()) };
        forward.check(gpu.stream, &tables, &lookups)?;
        Ok(())
    }
}
