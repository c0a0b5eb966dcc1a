//! Work of an instruction on a GPU.

use steptime_cuda::gemm::{Blas, Math};
use steptime_cuda::{Error, Slice, Stream};
use steptime_ops::embedding::Pooling;

use super::element_function::ElementFunction;
use super::row_caches::{RowCaches, StateAccess};
use super::slices::GpuSlices;
use crate::arg::Arg;
use crate::error::Failure;
use crate::gpu_group::GpuGroup;
use crate::numbers::Numbers;

/// Resources of an instruction on a GPU.
pub(crate) struct Gpu<'r, 'm> {
    pub(crate) stream: &'r Stream,
    pub(crate) blas: &'r Blas,
    /// Precision of products.
    pub(crate) math: Math,
    /// The memory of the instruction.
    pub(crate) memory: GpuSlices<'m>,
    /// Caches of the rows of tables in host memory.
    pub(crate) caches: &'r mut RowCaches,
    /// Numbers of the optimizer in the device's memory.
    pub(crate) device_numbers: Slice<'r, f32>,
    pub(crate) numbers: &'r Numbers,
    /// The rank of its job, where it is one of several.
    pub(crate) group: Option<&'r GpuGroup>,
    /// The parts of a capture; `None` outside of one.
    pub(crate) parts: Option<&'r mut dyn PartSink>,
}

impl Gpu<'_, '_> {
    /// Ends a part of the instruction: the launches since its last part read and write these operands alone, and wait for its part `after`.
    /// Launches behind the last part use all operands, and wait for all parts. Returns the number of the part.
    pub(crate) fn end_part(
        &mut self,
        reads: &[&Arg],
        writes: &[&Arg],
        after: Option<usize>,
    ) -> Result<Option<usize>, Failure> {
        let Some(parts) = &mut self.parts else { return Ok(None) };
        let slots = |args: &[&Arg]| args.iter().map(|arg| arg.slot).collect::<Vec<_>>();
        Ok(parts.end(&slots(reads), &slots(writes), after.as_slice())?)
    }
}

/// Parts of an instruction that is captured.
pub(crate) trait PartSink {
    /// Ends a part that reads and writes the memory of these slots, and waits for the parts `after` of its instruction. Returns its number, or
    /// `None` where there is no launch since the last part.
    fn end(&mut self, reads: &[usize], writes: &[usize], after: &[usize]) -> Result<Option<usize>, Error>;
}

/// Work of an instruction on a GPU.
pub(crate) trait GpuWork: Send {
    /// Compiles kernels and allocates work space, once.
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure>;

    /// Puts the work into the stream. It neither waits nor allocates, so that it can be captured.
    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure>;

    /// Puts the work that reads inputs alone into the stream, so that the next launch leaves it out. Returns whether there is some.
    fn launch_early(&mut self, _: &mut Gpu<'_, '_>) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Waits for the stream, and reports errors in the inputs of the last launch.
    fn check(&mut self, _: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        Ok(())
    }

    /// The function of elements that it computes, where it is one.
    fn function(&self) -> Option<&ElementFunction> {
        None
    }

    /// The copies that it makes, where it does nothing else.
    fn copies(&self) -> Option<Vec<(Arg, Arg)>> {
        None
    }

    /// The exchange of flat tensors between all ranks that it is.
    fn flat_exchange(&self) -> Option<FlatExchange<'_>> {
        None
    }

    /// The optimizer states of table rows that it keeps.
    fn rows(&self) -> Option<&dyn RowStates> {
        None
    }

    /// The optimizer states of table rows that it keeps, for changes.
    fn rows_mut(&mut self) -> Option<&mut dyn RowStates> {
        None
    }

    /// The tables whose rows it takes by lookups alone, so that a row cache can hold them.
    fn table_use(&self) -> Option<TableUse<'_>> {
        None
    }

    /// Whether it exchanges with other ranks.
    fn is_exchange(&self) -> bool {
        false
    }

    /// Takes the rows of these tables from a row cache, by its number.
    fn use_cache(&mut self, _: usize) {}
}

/// An exchange of flat tensors: for each rank its part of both.
pub(crate) struct FlatExchange<'a> {
    pub(crate) sent: &'a [Vec<Arg>],
    pub(crate) received: &'a [Vec<Arg>],
    /// The whole tensors, sent and received, with the sizes of their parts.
    pub(crate) whole: &'a [(Arg, Vec<usize>); 2],
}

/// Tables and their lookups.
pub(crate) struct TableUse<'a> {
    pub(crate) tables: &'a [Arg],
    pub(crate) names: &'a [String],
    pub(crate) indices: &'a Arg,
    pub(crate) offsets: &'a Arg,
    pub(crate) pooling: Pooling,
    /// Number of bags of a table.
    pub(crate) bags: usize,
}

/// Memory of the optimizer states of table rows on a GPU.
pub(crate) struct StateMemory<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) caches: &'a mut RowCaches,
}

/// Optimizer states of table rows on a GPU.
pub(crate) trait RowStates {
    /// Names of the tables, and the floats of a row of each one's state.
    fn states(&self) -> Vec<(&str, usize)>;

    /// Copies the state of a table to the host, calls `work` with the state of each row, and copies it back if it changes.
    fn each_state(
        &mut self,
        memory: StateMemory<'_>,
        table: &str,
        rows: usize,
        access: StateAccess,
        work: &mut dyn FnMut(&mut [f32]),
    ) -> Result<(), Failure>;

    /// Sets the learning rate of later steps.
    fn set_rate(&mut self, memory: StateMemory<'_>, rate: f32) -> Result<(), Failure>;

    /// Sets the number of steps taken.
    fn set_steps(&mut self, memory: StateMemory<'_>, steps: u64) -> Result<(), Failure>;
}

/// A function that puts work into the stream.
pub(crate) type Launch = Box<dyn FnMut(&mut Gpu<'_, '_>) -> Result<(), Failure> + Send>;

/// Work whose preparation returns its launch.
struct Prepared<P> {
    prepare: Option<P>,
    launch: Option<Launch>,
}

impl<P> GpuWork for Prepared<P>
where
    P: FnOnce(&mut Gpu<'_, '_>) -> Result<Launch, Failure> + Send,
{
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        if let Some(prepare) = self.prepare.take() {
            self.launch = Some(prepare(gpu)?);
        }
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.launch.as_mut().map_or(Ok(()), |launch| launch(gpu))
    }
}

/// Work from a function that compiles it for its operands and returns its launch.
pub(crate) fn prepared(
    prepare: impl FnOnce(&mut Gpu<'_, '_>) -> Result<Launch, Failure> + Send + 'static,
) -> Box<dyn GpuWork> {
    Box::new(Prepared { prepare: Some(prepare), launch: None })
}
