//! Mutable values of a table with a fixed shape.

use std::ops::Deref;

use super::{Columns, EmbeddingError, Table, WeightsMut};

impl<'a> Columns for Table<'a> {
    type Values<'t>
        = TableValues<'t, 'a>
    where
        Self: 't;

    fn dim(&self) -> usize {
        Table::dim(self)
    }

    fn values_mut(&mut self) -> TableValues<'_, 'a> {
        TableValues(self)
    }
}

/// Mutable values of a table with a fixed shape.
#[derive(Debug)]
pub struct TableValues<'t, 'a>(&'t mut Table<'a>);

impl<'a> Deref for TableValues<'_, 'a> {
    type Target = Table<'a>;

    fn deref(&self) -> &Table<'a> {
        self.0
    }
}

impl<'t> TableValues<'t, '_> {
    /// Does [`Table::row_mut`].
    ///
    /// # Panics
    ///
    /// The row does not exist.
    #[must_use]
    pub fn row_mut(&mut self, row: usize) -> Option<&mut [u8]> {
        self.0.row_mut(row)
    }

    /// Does [`Table::write_row`].
    ///
    /// # Panics
    ///
    /// The row does not exist, or there are not D values.
    pub fn write_row(&mut self, row: usize, values: &[f32]) -> bool {
        self.0.write_row(row, values)
    }

    /// Does [`Table::weights_mut`].
    ///
    /// # Errors
    ///
    /// The table is quantized, read-only or not aligned.
    pub fn weights_mut(self) -> Result<(WeightsMut<'t>, usize), EmbeddingError> {
        self.0.weights_mut()
    }
}
