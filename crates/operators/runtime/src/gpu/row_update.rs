//! Gradients of tables with the update of their rows on a GPU, and the optimizer states of the rows.

use steptime_aten::Dtype;
use steptime_cuda::Slice;
use steptime_cuda::cache::Batch;
use steptime_cuda::embedding::{Grouping, Ints, Lookups, Payload, RowSettings, Sizes, Table, Tables};
use steptime_ops::embedding::backward::RowRule;
use steptime_ops::embedding::{Bounds, Element, Pooling};

use super::row_caches::StateAccess;
use super::row_optimizer::TypedOptimizer;
use super::slices::GpuSlices;
use super::work::{Gpu, GpuWork, RowStates, StateMemory, TableUse};
use crate::arg::Arg;
use crate::error::Failure;
use crate::numbers::Numbers;
use crate::row_update::UpdateArgs;

/// An update of all rows that were looked up.
pub(crate) struct GpuRowUpdate {
    args: UpdateArgs,
    names: Vec<String>,
    pooling: Pooling,
    rule: fn(&Numbers) -> RowRule,
    /// Largest number of lookups of a table.
    longest: usize,
    /// Number of the row cache of its tables.
    cache: Option<usize>,
    grouping: Option<Grouping>,
    /// Whether the lookups of the next launch are grouped already.
    grouped: bool,
    /// The optimizer of tables on the GPU; that of cached rows belongs to the cache.
    optimizer: Option<TypedOptimizer>,
}

/// Tables over the memory of an instruction, which it changes.
fn tables_mut<'a>(
    args: &[Arg],
    names: &[String],
    pooling: Pooling,
    memory: &mut GpuSlices<'a>,
) -> Result<Tables<'a>, Failure> {
    let mut all = Vec::with_capacity(args.len());
    for (arg, name) in args.iter().zip(names) {
        let bytes = arg.device_row_mut::<f32>(memory)?.cast();
        let shape = [arg.shape()[0], arg.shape()[1]];
        all.push(Table::borrow_mut(name, bytes, shape, Element::F32, 4 * shape[1])?);
    }
    Ok(Tables::new(all, pooling))
}

/// Tables over the memory of an instruction, which it reads.
pub(crate) fn find_tables<'a>(
    args: &[Arg],
    names: &[String],
    pooling: Pooling,
    memory: &GpuSlices<'a>,
) -> Result<Tables<'a>, Failure> {
    let mut all = Vec::with_capacity(args.len());
    for (arg, name) in args.iter().zip(names) {
        let bytes = arg.device_row::<f32>(memory)?.cast();
        let shape = [arg.shape()[0], arg.shape()[1]];
        all.push(Table::borrow(name, bytes, shape, Element::F32, 4 * shape[1])?);
    }
    Ok(Tables::new(all, pooling))
}

impl GpuRowUpdate {
    pub(crate) fn new(
        args: UpdateArgs,
        names: Vec<String>,
        pooling: Pooling,
        rule: fn(&Numbers) -> RowRule,
        longest: usize,
    ) -> GpuRowUpdate {
        let (cache, grouping, optimizer) = (None, None, None);
        GpuRowUpdate { args, names, pooling, rule, longest, cache, grouping, grouped: false, optimizer }
    }

    fn tables<'a>(&self, memory: &mut GpuSlices<'a>) -> Result<Tables<'a>, Failure> {
        tables_mut(&self.args.tables, &self.names, self.pooling, memory)
    }

    fn lookups<'a>(&self, memory: &GpuSlices<'a>) -> Result<Lookups<'a>, Failure> {
        let [indices, offsets] = [&self.args.indices, &self.args.offsets].map(|arg| arg.device_row(memory));
        Ok(Lookups::new(self.args.gradient.shape()[0], Ints::I64(indices?), Ints::I64(offsets?))?)
    }
}

impl RowStates for GpuRowUpdate {
    fn states(&self) -> Vec<(&str, usize)> {
        let rule = (self.rule)(&Numbers::for_class("SGD"));
        let width = |arg: &Arg| rule.state_width(arg.shape()[1]);
        self.names.iter().map(String::as_str).zip(self.args.tables.iter().map(width)).collect()
    }

    fn each_state(
        &mut self,
        memory: StateMemory<'_>,
        table: &str,
        rows: usize,
        access: StateAccess,
        work: &mut dyn FnMut(&mut [f32]),
    ) -> Result<(), Failure> {
        let Some(at) = self.names.iter().position(|name| name == table) else { return Ok(()) };
        if let Some(cache) = self.cache {
            let states = memory.caches.states(memory.stream, [cache, at], access)?;
            states.chunks_mut((states.len() / rows).max(1)).take(rows).for_each(work);
            return Ok(());
        }
        let Some(optimizer) = &mut self.optimizer else { return Ok(()) };
        let (state, pitch) = optimizer.state(at);
        let mut values = state.to_host(memory.stream)?;
        values.chunks_mut(pitch.max(1)).take(rows).for_each(work);
        if access == StateAccess::Change {
            optimizer.state_mut(at).write(memory.stream, &values)?;
        }
        Ok(())
    }

    fn set_rate(&mut self, memory: StateMemory<'_>, rate: f32) -> Result<(), Failure> {
        if let Some(at) = self.cache {
            let optimizer = memory.caches.cache(at).optimizer_mut();
            return Ok(optimizer.map_or(Ok(()), |own| own.set_learning_rate(memory.stream, rate))?);
        }
        Ok(self.optimizer.as_mut().map_or(Ok(()), |own| own.set_learning_rate(memory.stream, rate))?)
    }

    fn set_steps(&mut self, memory: StateMemory<'_>, steps: u64) -> Result<(), Failure> {
        if let Some(at) = self.cache {
            let optimizer = memory.caches.cache(at).optimizer_mut();
            return Ok(optimizer.map_or(Ok(()), |own| own.set_steps(memory.stream, steps))?);
        }
        Ok(self.optimizer.as_mut().map_or(Ok(()), |own| own.set_steps(memory.stream, steps))?)
    }
}

impl GpuWork for GpuRowUpdate {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let settings = RowSettings::new((self.rule)(gpu.numbers), gpu.numbers.rate as f32);
        let stride = self.args.gradient.layout.strides()[0];
        if let Some(at) = self.cache {
            if self.args.gradient.dtype != Dtype::F32 {
                return Err("tables in host memory take gradients of 32 bits: use --dtype tf32 or f32".into());
            }
            let cache = gpu.caches.cache(at);
            let sizes = cache.sizes(stride);
            let payload = Payload::needed(cache.tables(), false);
            let grouping = Grouping::new(gpu.stream, cache.tables(), sizes, self.longest, payload)?;
            cache.train(gpu.stream, &grouping, sizes, settings)?;
            self.grouping = Some(grouping);
            return Ok(());
        }
        let lookups = self.lookups(&gpu.memory)?;
        let tables = self.tables(&mut gpu.memory)?;
        let sizes = Sizes::from_lookups(&lookups, stride);
        let payload = Payload::needed(&tables, false);
        let grouping = Grouping::new(gpu.stream, &tables, sizes, self.longest, payload)?;
        let dtype = self.args.gradient.dtype;
        self.optimizer = Some(TypedOptimizer::new(dtype, gpu.stream, &tables, &grouping, sizes, settings)?);
        self.grouping = Some(grouping);
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let lookups = self.lookups(&gpu.memory)?;
        let (bytes, size) =
            (self.args.gradient.device(&gpu.memory)?, self.args.gradient.dtype.size() as usize);
        let gradient: Slice<'_, u8> = bytes.slice(self.args.gradient.layout.offset() * size..bytes.len());
        if let Some(at) = self.cache {
            let Batch { tables, lookups, optimizer } = gpu.caches.cache(at).batch_of_copy(&lookups)?;
            let Some((grouping, optimizer)) = self.grouping.as_mut().zip(optimizer) else { return Ok(()) };
            grouping.run(gpu.stream, &lookups)?;
            let gradient = gradient.cast();
            return Ok(optimizer.step(gpu.stream, tables, &lookups, grouping, Bounds::Error, gradient)?);
        }
        let mut tables = self.tables(&mut gpu.memory)?;
        let Some((grouping, optimizer)) = self.grouping.as_mut().zip(self.optimizer.as_mut()) else {
            return Ok(());
        };
        if !std::mem::take(&mut self.grouped) {
            grouping.run(gpu.stream, &lookups)?;
            gpu.end_part(&[&self.args.indices, &self.args.offsets], &[], None)?;
        }
        Ok(optimizer.step(gpu.stream, &mut tables, &lookups, grouping, gradient)?)
    }

    fn launch_early(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<bool, Failure> {
        if self.cache.is_some() {
            return Ok(false);
        }
        let lookups = self.lookups(&gpu.memory)?;
        let Some(grouping) = &mut self.grouping else { return Ok(false) };
        grouping.run(gpu.stream, &lookups)?;
        gpu.end_part(&[&self.args.indices, &self.args.offsets], &[], None)?;
        self.grouped = true;
        Ok(true)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        if self.cache.is_some() {
            // The cache has checked the batch.
            return Ok(());
        }
        let lookups = self.lookups(&gpu.memory)?;
        let tables = self.tables(&mut gpu.memory)?;
        let Some(grouping) = &self.grouping else { return Ok(()) };
        grouping.check(gpu.stream, &tables, &lookups, Bounds::Error)?;
        Ok(())
    }

    fn table_use(&self) -> Option<TableUse<'_>> {
        let UpdateArgs { gradient, tables, indices, offsets } = &self.args;
        let (names, pooling, bags) = (&self.names, self.pooling, gradient.shape()[0]);
        Some(TableUse { tables, names, indices, offsets, pooling, bags })
    }

    fn use_cache(&mut self, cache: usize) {
        self.cache = Some(cache);
    }

    fn rows(&self) -> Option<&dyn RowStates> {
        Some(self)
    }

    fn rows_mut(&mut self) -> Option<&mut dyn RowStates> {
        Some(self)
    }
}
