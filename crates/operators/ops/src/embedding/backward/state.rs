//! What an optimizer remembers of each row.

use super::super::{Element, EmbeddingError, HugeBuffer, Table};
use super::{BackwardError, RowRule};

/// State of one table: `width` floats for each row, rows `pitch` apart, in huge pages.
#[derive(Debug)]
pub struct State {
    rows: usize,
    dim: usize,
    width: usize,
    pitch: usize,
    buffer: HugeBuffer,
}

impl State {
    /// Zeros, as many as the rule needs. Memory is taken as rows are first trained.
    pub(super) fn zeros(rule: RowRule, table: &Table<'_>) -> Result<State, EmbeddingError> {
        let (rows, dim) = (table.rows(), table.dim());
        let width = rule.state_width(dim);
        let pitch = if width == 0 { 0 } else { Element::F32.pitch(width) / size_of::<f32>() };
        let buffer = HugeBuffer::zeros_of::<f32>(rows.saturating_mul(pitch)).map_err(|source| {
            let what = format!("state of {rows} rows of {width} floats");
            EmbeddingError::System { table: table.name().to_owned(), what, source }
        })?;
        Ok(State { rows, dim, width, pitch, buffer })
    }

    /// Fails unless it is that of this table.
    pub(super) fn check(&self, at: usize, table: &Table<'_>) -> Result<(), BackwardError> {
        let (rows, dim, given_rows, given_dim) = (self.rows, self.dim, table.rows(), table.dim());
        if (rows, dim) == (given_rows, given_dim) {
            return Ok(());
        }
        Err(BackwardError::Shape { table: at, rows, dim, given_rows, given_dim })
    }

    /// Floats of a row: see [`RowRule`] for their meaning.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Floats from row to row.
    pub(super) fn pitch(&self) -> usize {
        self.pitch
    }

    /// The state of a row.
    ///
    /// # Panics
    ///
    /// There is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        &self.buffer.of::<f32>()[row * self.pitch..][..self.width]
    }

    /// The state of a row, to be restored from a checkpoint.
    ///
    /// # Panics
    ///
    /// There is no such row.
    #[must_use]
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        &mut self.buffer.of_mut::<f32>()[row * self.pitch..][..self.width]
    }

    /// All of it.
    pub(super) fn values_mut(&mut self) -> &mut [f32] {
        self.buffer.of_mut()
    }
}
