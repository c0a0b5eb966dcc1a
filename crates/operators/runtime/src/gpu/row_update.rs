//! Gradients of tables with the update of their rows on a GPU, and the optimizer states of the rows.

use steptime_cuda::Stream;
use steptime_cuda::embedding::{
    Grouping, Ints, Lookups, Payload, RowOptimizer, RowSettings, Sizes, Table, Tables,
};
use steptime_ops::embedding::backward::RowRule;
use steptime_ops::embedding::{Bounds, Element, Pooling};

use super::slices::GpuSlices;
use super::work::{Gpu, GpuWork, RowStates};
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
    prepared: Option<(Grouping, RowOptimizer)>,
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
        GpuRowUpdate { args, names, pooling, rule, longest, prepared: None }
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

    fn change_state(
        &mut self,
        stream: &Stream,
        table: &str,
        rows: usize,
        work: &mut dyn FnMut(&mut [f32]),
    ) -> Result<(), Failure> {
        let at = self.names.iter().position(|name| name == table);
        let Some((at, (_, optimizer))) = at.zip(self.prepared.as_mut()) else { return Ok(()) };
        let (state, pitch) = optimizer.state(at);
        let mut values = state.to_host(stream)?;
        values.chunks_mut(pitch.max(1)).take(rows).for_each(work);
        Ok(optimizer.state_mut(at).write(stream, &values)?)
    }

    fn set_rate(&mut self, stream: &Stream, rate: f32) -> Result<(), Failure> {
        match &mut self.prepared {
            Some((_, optimizer)) => Ok(optimizer.set_learning_rate(stream, rate)?),
            None => Ok(()),
        }
    }

    fn set_steps(&mut self, stream: &Stream, steps: u64) -> Result<(), Failure> {
        match &mut self.prepared {
            Some((_, optimizer)) => Ok(optimizer.set_steps(stream, steps)?),
            None => Ok(()),
        }
    }
}

impl GpuWork for GpuRowUpdate {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let lookups = self.lookups(&gpu.memory)?;
        let tables = self.tables(&mut gpu.memory)?;
        let sizes = Sizes::from_lookups(&lookups, self.args.gradient.layout.strides()[0]);
        let payload = Payload::needed(&tables, false);
        let grouping = Grouping::new(gpu.stream, &tables, sizes, self.longest, payload)?;
        let settings = RowSettings::new((self.rule)(gpu.numbers), gpu.numbers.rate as f32);
        let optimizer = RowOptimizer::new(gpu.stream, &tables, &grouping, sizes, settings)?;
        self.prepared = Some((grouping, optimizer));
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let lookups = self.lookups(&gpu.memory)?;
        let gradient = self.args.gradient.device(&gpu.memory)?;
        let gradient = gradient.slice(self.args.gradient.layout.offset()..gradient.len());
        let mut tables = self.tables(&mut gpu.memory)?;
        let Some((grouping, optimizer)) = &mut self.prepared else { return Ok(()) };
        grouping.run(gpu.stream, &lookups)?;
        gpu.end_part(&[&self.args.indices, &self.args.offsets], &[], None)?;
        Ok(optimizer.step(gpu.stream, &mut tables, &lookups, grouping, Bounds::Error, gradient)?)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let lookups = self.lookups(&gpu.memory)?;
        let tables = self.tables(&mut gpu.memory)?;
        let Some((grouping, _)) = &self.prepared else { return Ok(()) };
        grouping.check(gpu.stream, &tables, &lookups, Bounds::Error)?;
        Ok(())
    }

    fn rows(&self) -> Option<&dyn RowStates> {
        Some(self)
    }

    fn rows_mut(&mut self) -> Option<&mut dyn RowStates> {
        Some(self)
    }
}
