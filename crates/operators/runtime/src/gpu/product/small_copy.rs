//! Copies of small matrices of a product: turned, or with zeros behind their rows.

use steptime_cuda::rearrange::Copy;
use steptime_cuda::{Buffer, Error, Slice, SliceMut, Stream};
use steptime_ops::rearrange::RearrangeError;
use steptime_tensor::Layout;

use crate::gpu::RowsOf;

/// A copy of a matrix.
#[derive(Debug)]
pub(super) struct SmallCopy {
    pub(super) buffer: Buffer<u8>,
    pub(super) rows: RowsOf,
    copy: Elements,
}

/// A copy of elements of 16 or 32 bits.
#[derive(Debug)]
enum Elements {
    Halves(Copy<u16>),
    Words(Copy<u32>),
}

impl SmallCopy {
    /// A copy of a right matrix, with so many rows and columns of zeros behind its own; elements have `size` bytes.
    pub(super) fn of_factor(
        stream: &Stream,
        matrix: RowsOf,
        zeros: [usize; 2],
        transposed: bool,
        size: usize,
    ) -> Result<SmallCopy, Error> {
        let [rows, columns] = [matrix.rows + zeros[0], matrix.columns + zeros[1]];
        let stride = if transposed { rows } else { columns };
        let own = RowsOf { start: 0, rows, columns, stride, transposed, pad: 0 };
        let part = RowsOf { rows: matrix.rows, columns: matrix.columns, ..own };
        SmallCopy::new(stream, [matrix, part], own, size)
    }

    /// A copy of a result without its last columns.
    pub(super) fn of_result(
        stream: &Stream,
        to: RowsOf,
        zeros: usize,
        size: usize,
    ) -> Result<SmallCopy, Error> {
        let columns = to.columns + zeros;
        let own = RowsOf { start: 0, columns, stride: columns, ..to };
        SmallCopy::new(stream, [RowsOf { columns: to.columns, ..own }, to], own, size)
    }

    fn new(stream: &Stream, [from, to]: [RowsOf; 2], rows: RowsOf, size: usize) -> Result<SmallCopy, Error> {
        let (device, from, to) = (stream.device(), layout(from)?, layout(to)?);
        let copy = match size {
            2 => Elements::Halves(Copy::new(device, &from, &to)?),
            _ => Elements::Words(Copy::new(device, &from, &to)?),
        };
        Ok(SmallCopy { buffer: Buffer::zeros(stream, rows.rows * rows.columns * size)?, rows, copy })
    }

    /// Copies the matrix to the buffer.
    pub(super) fn fill(&mut self, stream: &Stream, from: Slice<'_, u8>) -> Result<(), Error> {
        self.copy.run(stream, from, self.buffer.as_mut())
    }

    /// Copies the buffer to the matrix.
    pub(super) fn store(&self, stream: &Stream, to: SliceMut<'_, u8>) -> Result<(), Error> {
        self.copy.run(stream, self.buffer.as_ref(), to)
    }
}

impl Elements {
    fn run(&self, stream: &Stream, from: Slice<'_, u8>, to: SliceMut<'_, u8>) -> Result<(), Error> {
        match self {
            Elements::Halves(copy) => copy.run(stream, from.cast(), &mut to.cast()),
            Elements::Words(copy) => copy.run(stream, from.cast(), &mut to.cast()),
        }
    }
}

/// The layout of a matrix.
fn layout(matrix: RowsOf) -> Result<Layout, Error> {
    let RowsOf { start, rows, columns, stride, transposed, .. } = matrix;
    let strides = if transposed { [1, stride] } else { [stride, 1] };
    Ok(Layout::new(&[rows, columns], &strides, start).map_err(RearrangeError::from)?)
}
