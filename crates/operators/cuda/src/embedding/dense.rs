//! The dense gradient of one table, for optimizers of whole tables.

use steptime_ops::embedding::{Bounds, Element, Pooling};

use super::{Grouping, Ints, Lookups, OffsetsFromSizes, Payload, RowOptimizer, Sizes, Table, Tables};
use crate::{Buffer, Error, Float, Slice, SliceMut, Stream};

/// Name of the result in messages, as on the CPU.
pub(super) const NAME: &str = "the gradient of a table";

/// The gradient `[E, D]` of a table, in 32 bits, from the gradient `[B, D]` of its bags, with elements `G`. A row without lookups has zeros; the others
/// have the bits of `steptime_ops::embedding::backward`, except that zeros are positive.
///
/// Made once for sizes. [`DenseGradient::run`] allocates nothing on the device and does not wait within one stream, so
/// it can be captured in the stream it was made in.
#[derive(Debug)]
pub struct DenseGradient<G = f32> {
    shape: [usize; 2],
    pooling: Pooling,
    sums: OffsetsFromSizes,
    offsets: Buffer<i64>,
    grouping: Grouping,
    rows: RowOptimizer<G>,
}

impl<G: Float> DenseGradient<G> {
    /// The gradient of a table of `[E, D]` floats, for `bags` bags of at most `lookups` lookups in all, pooled by sum or
    /// mean.
    ///
    /// # Errors
    ///
    /// Another pooling; a shape that no table has; more lookups than 32 bits count; no compiler; not enough memory.
    pub fn new(
        stream: &Stream,
        shape: [usize; 2],
        bags: usize,
        lookups: usize,
        pooling: Pooling,
    ) -> Result<DenseGradient<G>, Error> {
        if !matches!(pooling, Pooling::Sum | Pooling::Mean) {
            return Err(Error::Unsupported {
                what: format!("the dense gradient of bags pooled by {pooling:?}"),
                remedy: "pool them by sum or mean",
            });
        }
        let stride = shape[1];
        let sizes = Sizes { bags, lookups, index_width: 8, offset_width: 8, weighted: false, stride };
        let tables = unplaced(&[shape], pooling)?;
        let payload = Payload::needed(&tables, false);
        let grouping = Grouping::new(stream, &tables, sizes, lookups, payload)?;
        Ok(DenseGradient {
            shape,
            pooling,
            sums: OffsetsFromSizes::new(stream.device())?,
            offsets: Buffer::zeros(stream, bags + 1)?,
            rows: RowOptimizer::adding(stream, &tables, &grouping, sizes)?.moving(),
            grouping,
        })
    }

    /// Computes the gradient of the table from the row of each lookup, `[N]`, the number of lookups of each bag, `[B]`,
    /// and the gradient of the bags, `[B, D]`. The result is all zeros where lookups are wrong:
    /// [`DenseGradient::check`] reports them.
    ///
    /// # Errors
    ///
    /// Operands of other sizes than this was made for; a result or a gradient that does not begin at a multiple of 16
    /// bytes; a kernel that failed.
    pub fn run(
        &mut self,
        stream: &Stream,
        indices: Slice<'_, i64>,
        sizes: Slice<'_, i64>,
        gradient: Slice<'_, G>,
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        self.sums.run(stream, sizes, &mut self.offsets.as_mut())?;
        let lookups = Lookups::new(sizes.len(), Ints::I64(indices), Ints::I64(self.offsets.as_ref()))?;
        self.grouping.run(stream, &lookups)?;
        let len = to.len();
        let mut whole = to.slice(0..len);
        whole.fill_bytes(stream, 0)?;
        let table = gradient_table(whole, self.shape)?;
        let mut tables = Tables::new(vec![table], self.pooling);
        self.rows.step(stream, &mut tables, &lookups, &self.grouping, Bounds::Error, gradient)
    }

    /// Waits for the stream, and reports errors in the lookups of the last run, whose indices these must be.
    ///
    /// # Errors
    ///
    /// Another number of indices; negative sizes, or sizes of more or fewer lookups than there are; the first index out
    /// of range; a kernel that failed.
    pub fn check(&self, stream: &Stream, indices: Slice<'_, i64>) -> Result<(), Error> {
        let (what, found, needed) = ("the indices of the last run", indices.len(), self.grouping.len());
        if found != needed {
            return Err(Error::Size { what, found, needed });
        }
        let bags = self.grouping.sizes().bags;
        let lookups = Lookups::new(bags, Ints::I64(indices), Ints::I64(self.offsets.as_ref()))?;
        let tables = unplaced(&[self.shape], self.pooling)?;
        self.grouping.check(stream, &tables, &lookups, Bounds::Error).map(|_| ())
    }
}

/// The memory of a gradient as a table of this shape.
pub(super) fn gradient_table(to: SliceMut<'_, f32>, shape: [usize; 2]) -> Result<Table<'_>, Error> {
    let [rows, dim] = shape;
    let (found, needed) = (to.len(), rows.saturating_mul(dim));
    if found != needed {
        return Err(Error::Size { what: NAME, found, needed });
    }
    if !to.address().is_multiple_of(16) {
        return Err(Error::Unsupported {
            what: format!("{NAME} at address {:#x}", to.address()),
            remedy: "begin it at a multiple of 16 bytes",
        });
    }
    Table::borrow_mut(NAME, to.cast(), shape, Element::F32, Element::F32.align() * dim)
}

/// Tables of these shapes without memory, for compiling and for messages.
pub(super) fn unplaced(shapes: &[[usize; 2]], pooling: Pooling) -> Result<Tables<'static>, Error> {
    let table = |&[rows, dim]: &[usize; 2]| {
        let pitch = Element::F32.align() * dim;
        // SAFETY: kernels get the addresses of the tables of a step, and these take part in none: only their shapes,
        // their names and the alignment of their addresses are used.
        let memory = unsafe { Slice::from_raw(256, rows.saturating_mul(pitch)) };
        Table::borrow(NAME, memory, [rows, dim], Element::F32, pitch)
    };
    Ok(Tables::new(shapes.iter().map(table).collect::<Result<_, _>>()?, pooling))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_no_table_has_are_refused() {
        assert!(unplaced(&[[5, 3]], Pooling::Sum).is_ok());
        for shape in [[0, 4], [4, 0], [1 << 33, 4]] {
            assert!(unplaced(&[[5, 3], shape], Pooling::Mean).is_err(), "{shape:?}");
        }
    }
}
