//! Operands of instructions.

use bytemuck::Pod;
use steptime_aten::Dtype;
use steptime_ops::gemm::{MatMut, MatRef};
use steptime_tensor::{Element, Layout, View, ViewMut};

use crate::error::Failure;
use crate::slices::Slices;

/// A tensor of an instruction: a layout over the memory of a slot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arg {
    /// Index of its memory among those of the instruction.
    pub(crate) slot: usize,
    pub(crate) layout: Layout,
    pub(crate) dtype: Dtype,
    /// Number of zeros behind each row.
    pub(crate) pad: usize,
}

/// Memory that an instruction does not have, or has used already.
#[derive(Debug, thiserror::Error)]
#[error("two operands share memory that is written")]
pub(crate) struct SharedMemory;

impl Arg {
    pub(crate) fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.len()
    }

    fn read<'a, T: Element + Pod>(&self, slices: &Slices<'a>) -> Result<View<'a, T>, Failure> {
        let bytes = slices.read(self.slot).ok_or(SharedMemory)?;
        Ok(View::from_layout(bytemuck::cast_slice(bytes), self.layout.clone())?)
    }

    fn write<'a, T: Element + Pod>(&self, slices: &mut Slices<'a>) -> Result<ViewMut<'a, T>, Failure> {
        let bytes = slices.write(self.slot).ok_or(SharedMemory)?;
        Ok(ViewMut::from_layout(bytemuck::cast_slice_mut(bytes), self.layout.clone())?)
    }

    /// Its floats.
    pub(crate) fn floats<'a>(&self, slices: &Slices<'a>) -> Result<View<'a, f32>, Failure> {
        self.read(slices)
    }

    /// Its floats, for writing.
    pub(crate) fn floats_mut<'a>(&self, slices: &mut Slices<'a>) -> Result<ViewMut<'a, f32>, Failure> {
        self.write(slices)
    }

    /// Its integers.
    pub(crate) fn ints<'a>(&self, slices: &Slices<'a>) -> Result<View<'a, i64>, Failure> {
        self.read(slices)
    }

    /// Its integers, for writing.
    pub(crate) fn ints_mut<'a>(&self, slices: &mut Slices<'a>) -> Result<ViewMut<'a, i64>, Failure> {
        self.write(slices)
    }

    /// Its truth values, one byte each.
    pub(crate) fn flags<'a>(&self, slices: &Slices<'a>) -> Result<View<'a, u8>, Failure> {
        self.read(slices)
    }

    /// Its truth values, for writing.
    pub(crate) fn flags_mut<'a>(&self, slices: &mut Slices<'a>) -> Result<ViewMut<'a, u8>, Failure> {
        self.write(slices)
    }

    /// Its floats in order, where they are neighbours.
    pub(crate) fn row<'a>(&self, slices: &Slices<'a>) -> Result<&'a [f32], Failure> {
        let bytes = slices.read(self.slot).ok_or(SharedMemory)?;
        let all: &[f32] = bytemuck::cast_slice(bytes);
        Ok(&all[self.layout.offset()..][..self.len()])
    }

    /// Its floats in order, for writing.
    pub(crate) fn row_mut<'a>(&self, slices: &mut Slices<'a>) -> Result<&'a mut [f32], Failure> {
        let bytes = slices.write(self.slot).ok_or(SharedMemory)?;
        let all: &mut [f32] = bytemuck::cast_slice_mut(bytes);
        Ok(&mut all[self.layout.offset()..][..self.len()])
    }

    /// Its integers in order, where they are neighbours.
    pub(crate) fn int_row<'a>(&self, slices: &Slices<'a>) -> Result<&'a [i64], Failure> {
        let bytes = slices.read(self.slot).ok_or(SharedMemory)?;
        let all: &[i64] = bytemuck::cast_slice(bytes);
        Ok(&all[self.layout.offset()..][..self.len()])
    }

    /// The matrix that it is; of a tensor of rank 3, the one at `batch`.
    pub(crate) fn matrix<'a>(&self, slices: &Slices<'a>, batch: usize) -> Result<MatRef<'a>, Failure> {
        let bytes = slices.read(self.slot).ok_or(SharedMemory)?;
        let all: &[f32] = bytemuck::cast_slice(bytes);
        let (start, [rows, columns], [down, right]) = self.plane(batch);
        Ok(MatRef::with_strides(&all[start..], rows, columns, down, right)?)
    }

    /// The matrix that it is, for writing.
    pub(crate) fn matrix_mut<'a>(&self, slices: &mut Slices<'a>) -> Result<MatMut<'a>, Failure> {
        let bytes = slices.write(self.slot).ok_or(SharedMemory)?;
        let all: &mut [f32] = bytemuck::cast_slice_mut(bytes);
        let (start, [rows, columns], [down, right]) = self.plane(0);
        Ok(MatMut::with_strides(&mut all[start..], rows, columns, down, right)?)
    }

    /// Start, sizes and strides of the last two dimensions.
    pub(crate) fn plane(&self, batch: usize) -> (usize, [usize; 2], [usize; 2]) {
        let (shape, strides) = (self.layout.shape(), self.layout.strides());
        let rank = shape.len();
        let at = |from_end: usize| rank.checked_sub(from_end).map_or((1, 1), |at| (shape[at], strides[at]));
        let ((rows, down), (columns, right)) = (at(2), at(1));
        let start = self.layout.offset() + if rank > 2 { batch * strides[rank - 3] } else { 0 };
        (start, [rows, columns], [down, right])
    }
}
