//! The optimizer of table rows for gradients of 16 or 32 bits.

use half::bf16;
use steptime_aten::Dtype;
use steptime_cuda::embedding::{Grouping, Lookups, RowOptimizer, RowSettings, Sizes, Tables};
use steptime_cuda::{Buffer, Error, Slice, SliceMut, Stream};
use steptime_ops::embedding::Bounds;

/// An optimizer for gradients of one type.
#[derive(Debug)]
pub(super) enum TypedOptimizer {
    Floats(RowOptimizer),
    Halves(RowOptimizer<bf16>),
}

/// The same expression for the optimizer of each type.
macro_rules! each {
    ($of:expr, $own:ident => $value:expr) => {
        match $of {
            TypedOptimizer::Floats($own) => $value,
            TypedOptimizer::Halves($own) => $value,
        }
    };
}

impl TypedOptimizer {
    pub(super) fn new(
        dtype: Dtype,
        stream: &Stream,
        tables: &Tables<'_>,
        grouping: &Grouping,
        sizes: Sizes,
        settings: RowSettings,
    ) -> Result<TypedOptimizer, Error> {
        Ok(match dtype {
            Dtype::Bf16 => {
                TypedOptimizer::Halves(RowOptimizer::new(stream, tables, grouping, sizes, settings)?)
            }
            _ => TypedOptimizer::Floats(RowOptimizer::new(stream, tables, grouping, sizes, settings)?),
        })
    }

    /// The state of a table, and floats from row to row of it.
    pub(super) fn state(&self, table: usize) -> (&Buffer<f32>, usize) {
        each!(self, own => own.state(table))
    }

    pub(super) fn state_mut(&mut self, table: usize) -> SliceMut<'_, f32> {
        each!(self, own => own.state_mut(table))
    }

    pub(super) fn set_learning_rate(&mut self, stream: &Stream, rate: f32) -> Result<(), Error> {
        each!(self, own => own.set_learning_rate(stream, rate))
    }

    pub(super) fn set_steps(&mut self, stream: &Stream, steps: u64) -> Result<(), Error> {
        each!(self, own => own.set_steps(stream, steps))
    }

    /// One step from the gradient of the pooled rows, given as bytes.
    pub(super) fn step(
        &mut self,
        stream: &Stream,
        tables: &mut Tables<'_>,
        lookups: &Lookups<'_>,
        grouping: &Grouping,
        gradient: Slice<'_, u8>,
    ) -> Result<(), Error> {
        each!(self, own => own.step(stream, tables, lookups, grouping, Bounds::Error, gradient.cast()))
    }
}
