//! The dense gradients of several tables, for optimizers of whole tables.

use steptime_ops::embedding::{Bounds, Pooling};

use super::clear::Clear;
use super::dense::{gradient_table, unplaced};
use super::{Grouping, Lookups, Payload, RowOptimizer, Sizes, Tables};
use crate::{Error, Float, Slice, SliceMut, Stream};

/// The gradients `[E, D]` of tables, in 32 bits, from the gradient `[B, D_0 + D_1 + ...]` of their bags, with elements `G`. Each has the bits of
/// [`DenseGradient`](super::DenseGradient) of its table alone.
///
/// Made once for tables and sizes. A run is [`DenseGradients::group`], [`DenseGradients::clear`] and [`DenseGradients::add`]; the first two
/// do not depend on one another. They neither wait nor allocate, so they can be captured; the exception is the first run with gradients at
/// other addresses.
#[derive(Debug)]
pub struct DenseGradients<G = f32> {
    shapes: Vec<[usize; 2]>,
    pooling: Pooling,
    grouping: Grouping,
    clear: Clear,
    rows: RowOptimizer<G>,
}

impl<G: Float> DenseGradients<G> {
    /// The gradients of tables of these rows and columns, for lookups of these sizes, of which no table has more than `longest`, pooled by sum
    /// or mean. `sizes.stride` is the number of elements from row to row of the gradient of the bags.
    ///
    /// # Errors
    ///
    /// Another pooling; weights; a shape that no table has; more lookups than 32 bits count; no compiler; not enough memory.
    pub fn new(
        stream: &Stream,
        shapes: Vec<[usize; 2]>,
        sizes: Sizes,
        longest: usize,
        pooling: Pooling,
    ) -> Result<DenseGradients<G>, Error> {
        if !matches!(pooling, Pooling::Sum | Pooling::Mean) || sizes.weighted {
            return Err(Error::Unsupported {
                what: format!(
                    "dense gradients of bags pooled by {pooling:?}, with weights: {}",
                    sizes.weighted
                ),
                remedy: "pool them by sum or mean, without weights",
            });
        }
        let tables = unplaced(&shapes, pooling)?;
        let grouping = Grouping::new(stream, &tables, sizes, longest, Payload::needed(&tables, false))?;
        let rows = RowOptimizer::adding(stream, &tables, &grouping, sizes)?;
        Ok(DenseGradients { shapes, pooling, clear: Clear::new(stream.device())?, rows, grouping })
    }

    /// Groups the lookups by row.
    ///
    /// # Errors
    ///
    /// Other sizes than this was made for; a kernel that failed.
    pub fn group(&mut self, stream: &Stream, lookups: &Lookups<'_>) -> Result<(), Error> {
        self.grouping.run(stream, lookups)
    }

    /// Sets all gradients to zero.
    ///
    /// # Errors
    ///
    /// A gradient that does not begin at a multiple of 16 bytes; a kernel that failed.
    pub fn clear(&self, stream: &Stream, to: &[SliceMut<'_, f32>]) -> Result<(), Error> {
        self.clear.run(stream, to)
    }

    /// Adds the sums of the rows that were looked up to gradients of zeros. No gradient changes where lookups are wrong:
    /// [`DenseGradients::check`] reports them.
    ///
    /// # Errors
    ///
    /// Operands of other sizes than this was made for, or not at multiples of 16 bytes; a kernel that failed.
    pub fn add(
        &mut self,
        stream: &Stream,
        lookups: &Lookups<'_>,
        gradient: Slice<'_, G>,
        to: Vec<SliceMut<'_, f32>>,
    ) -> Result<(), Error> {
        let (found, needed) = (to.len(), self.shapes.len());
        if found != needed {
            return Err(Error::Size { what: "the gradients of tables", found, needed });
        }
        let each = to.into_iter().zip(&self.shapes);
        let tables = each.map(|(to, &shape)| gradient_table(to, shape)).collect::<Result<_, _>>()?;
        let mut tables = Tables::new(tables, self.pooling);
        self.rows.step(stream, &mut tables, lookups, &self.grouping, Bounds::Error, gradient)
    }

    /// Waits for the stream, and reports errors in the lookups of the last run, which these must be.
    ///
    /// # Errors
    ///
    /// Wrong offsets; the first index out of range; a kernel that failed.
    pub fn check(&self, stream: &Stream, lookups: &Lookups<'_>) -> Result<(), Error> {
        let tables = unplaced(&self.shapes, self.pooling)?;
        self.grouping.check(stream, &tables, lookups, Bounds::Error).map(|_| ())
    }
}
