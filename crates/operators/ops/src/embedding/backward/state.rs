//! State of an optimizer for each row.

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
    /// A state of zeros, as large as the rule needs. Pages are allocated as rows are first trained.
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

    /// Fails unless it is the state of this table.
    pub(super) fn check(&self, at: usize, table: &Table<'_>) -> Result<(), BackwardError> {
        let (rows, dim, given_rows, given_dim) = (self.rows, self.dim, table.rows(), table.dim());
        if (rows, dim) == (given_rows, given_dim) {
            return Ok(());
        }
        Err(BackwardError::Shape { table: at, rows, dim, given_rows, given_dim })
    }

    /// Number of floats of a row: see [`RowRule`] for their meaning.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of floats from row to row.
    pub(super) fn pitch(&self) -> usize {
        self.pitch
    }

    /// The state of a row.
    ///
    /// # Panics
    ///
    /// The row does not exist.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        &self.buffer.as_slice::<f32>()[row * self.pitch..][..self.width]
    }

    /// The mutable state of a row, for restoring a checkpoint.
    ///
    /// # Panics
    ///
    /// The row does not exist.
    #[must_use]
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        &mut self.buffer.as_mut_slice::<f32>()[row * self.pitch..][..self.width]
    }

    /// All values.
    pub(super) fn values_mut(&mut self) -> &mut [f32] {
        self.buffer.as_mut_slice()
    }
}
