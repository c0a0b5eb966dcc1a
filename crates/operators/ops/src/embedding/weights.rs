//! The elements of a table as floats in place.

use half::{bf16, f16};

use super::{Element, EmbeddingError, Table};

/// Elements of a table that is not quantized: row `r` starts at element `r * pitch`.
#[derive(Debug, Clone, Copy)]
pub enum Weights<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 16-bit floats of IEEE 754.
    F16(&'a [f16]),
    /// 32-bit floats without their lower half.
    Bf16(&'a [bf16]),
}

/// Elements of a table that can be trained: row `r` starts at element `r * pitch`.
#[derive(Debug)]
pub enum WeightsMut<'a> {
    /// 32-bit floats.
    F32(&'a mut [f32]),
    /// 16-bit floats of IEEE 754.
    F16(&'a mut [f16]),
    /// 32-bit floats without their lower half.
    Bf16(&'a mut [bf16]),
}

impl Table<'_> {
    /// Returns the elements; `None` where the table is quantized or not aligned.
    #[must_use]
    pub fn weights(&self) -> Option<Weights<'_>> {
        let bytes = &self.bytes()[..(self.rows() - 1) * self.pitch() + self.row_bytes()];
        match self.element() {
            Element::F32 => bytemuck::try_cast_slice(bytes).ok().map(Weights::F32),
            Element::F16 => bytemuck::try_cast_slice(bytes).ok().map(Weights::F16),
            Element::Bf16 => bytemuck::try_cast_slice(bytes).ok().map(Weights::Bf16),
            Element::Int8(_) | Element::Int4(_) => None,
        }
    }

    /// Returns the mutable elements, and their number from row to row.
    ///
    /// # Errors
    ///
    /// The table is quantized, read-only or not aligned.
    pub fn weights_mut(&mut self) -> Result<(WeightsMut<'_>, usize), EmbeddingError> {
        let (element, pitch, bytes) =
            (self.element(), self.pitch() / self.element().align(), self.row_bytes());
        let end = (self.rows() - 1) * self.pitch() + bytes;
        let table = self.name().to_owned();
        let wrong = |why| EmbeddingError::NotTrainable { table: table.clone(), element, why };
        if element.is_quantized() {
            return Err(wrong("quantized"));
        }
        let bytes = &mut self.storage.bytes_mut().ok_or_else(|| wrong("read only"))?[..end];
        let weights = match element {
            Element::F32 => bytemuck::try_cast_slice_mut(bytes).map(WeightsMut::F32),
            Element::F16 => bytemuck::try_cast_slice_mut(bytes).map(WeightsMut::F16),
            _ => bytemuck::try_cast_slice_mut(bytes).map(WeightsMut::Bf16),
        };
        weights.map(|weights| (weights, pitch)).map_err(|_| wrong("not aligned"))
    }
}
