//! Operands of instructions on a GPU.

use bytemuck::Pod;
use steptime_cuda::linear::Rows;
use steptime_cuda::{Slice, SliceMut};

use super::slices::GpuSlices;
use crate::arg::{Arg, SharedMemory};
use crate::error::Failure;

impl Arg {
    /// The memory that its layout positions elements in.
    pub(crate) fn device<'a, T: Pod>(&self, memory: &GpuSlices<'a>) -> Result<Slice<'a, T>, Failure> {
        Ok(memory.read(self.slot).ok_or(SharedMemory)?.cast())
    }

    /// The memory that its layout positions elements in, for writing.
    pub(crate) fn device_mut<'a, T: Pod>(
        &self,
        memory: &mut GpuSlices<'a>,
    ) -> Result<SliceMut<'a, T>, Failure> {
        Ok(memory.write(self.slot).ok_or(SharedMemory)?.cast())
    }

    /// The bytes of its elements in order, where they are neighbours.
    pub(crate) fn device_bytes<'a>(&self, memory: &GpuSlices<'a>) -> Result<Slice<'a, u8>, Failure> {
        let size = self.dtype.size() as usize;
        let start = size * self.layout.offset();
        Ok(self.device(memory)?.slice(start..start + size * self.len()))
    }

    /// Its elements in order, where they are neighbours.
    pub(crate) fn device_row<'a, T: Pod>(&self, memory: &GpuSlices<'a>) -> Result<Slice<'a, T>, Failure> {
        let start = self.layout.offset();
        Ok(self.device(memory)?.slice(start..start + self.len()))
    }

    /// Its elements in order, for writing.
    pub(crate) fn device_row_mut<'a, T: Pod>(
        &self,
        memory: &mut GpuSlices<'a>,
    ) -> Result<SliceMut<'a, T>, Failure> {
        let (_, from) = self.device_mut(memory)?.split_at(self.layout.offset());
        Ok(from.split_at(self.len()).0)
    }
}

/// A matrix on a GPU: sizes, and rows or columns of neighbouring elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowsOf {
    pub(crate) start: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Elements from row to row, or from column to column where the matrix is stored transposed.
    pub(crate) stride: usize,
    /// Whether columns are stored one after the other.
    pub(crate) transposed: bool,
    /// Number of zeros behind each row.
    pub(crate) pad: usize,
}

impl RowsOf {
    /// The matrix that an operand is; `None` where neither rows nor columns are neighbours in memory.
    pub(crate) fn new(arg: &Arg) -> Option<RowsOf> {
        let (start, [rows, columns], [down, right]) = arg.plane(0);
        let of = |stride, transposed| {
            let pad = if transposed { 0 } else { arg.pad };
            Some(RowsOf { start, rows, columns, stride, transposed, pad })
        };
        match (right, down) {
            (1, _) if down >= columns || rows == 1 => of(down.max(columns), false),
            _ if columns == 1 && down >= 1 => of(down, false),
            (_, 1) if right >= rows => of(right, true),
            _ => None,
        }
    }

    /// Its rows.
    pub(crate) fn place(self) -> Rows {
        Rows { start: self.start, stride: self.stride }
    }
}

/// Whether all rows begin at multiples of 16 bytes, of elements of `size` bytes.
pub(crate) fn aligned(all: &[RowsOf], size: usize) -> bool {
    let fits = |elements: usize| (elements * size).is_multiple_of(16);
    all.iter().all(|one| fits(one.start) && fits(one.stride))
}
