//! One batch.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::ahead::Shared;
use super::{Allocate, Buffer, Heap, Layout, Position};

/// Rows of a training step, column by column. When it is dropped, its buffer is used for another batch.
pub struct Batch<A: Allocate = Heap> {
    /// Present until the batch is dropped.
    pub(super) buffer: Option<A::Buffer>,
    pub(super) shared: Arc<Shared<A>>,
    pub(super) layout: Layout,
    pub(super) rows: usize,
    pub(super) position: Position,
}

/// Indices of one categorical column in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnIndices<'a> {
    /// Indices: `[rows, hotness]`, or those of all rows one after another.
    pub values: &'a [i32],
    /// Offsets `[rows + 1]` of the rows' indices, from 0 to the number of indices, if the hotness varies.
    pub offsets: Option<&'a [i32]>,
}

impl<A: Allocate> Batch<A> {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Place of its first row.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Labels, `[rows]`.
    #[must_use]
    pub fn label(&self) -> &[f32] {
        self.part(&self.layout.label)
    }

    /// Dense values, `[rows, columns]` row by row.
    #[must_use]
    pub fn dense(&self) -> &[f32] {
        self.part(&self.layout.dense)
    }

    /// Indices of a categorical column.
    ///
    /// # Panics
    ///
    /// If the column does not exist.
    #[must_use]
    pub fn categorical(&self, column: usize) -> ColumnIndices<'_> {
        let places = &self.layout.categorical[column];
        let offsets = places.offsets.as_ref().map(|offsets| self.part(offsets));
        ColumnIndices { values: self.part(&places.values), offsets }
    }

    /// Number of categorical columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.layout.categorical.len()
    }

    /// Places of the columns in the buffer.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Memory with all columns, for one copy of the whole batch. It is there as long as the batch.
    #[must_use]
    pub fn buffer(&self) -> Option<&A::Buffer> {
        self.buffer.as_ref()
    }

    fn part<T: bytemuck::Pod>(&self, range: &Range<usize>) -> &[T] {
        // The layout was checked against the buffer before it was filled.
        let bytes = self.buffer.as_ref().and_then(|buffer| buffer.bytes().get(range.clone()));
        bytes.and_then(|bytes| bytemuck::try_cast_slice(bytes).ok()).unwrap_or_default()
    }
}

impl<A: Allocate> Drop for Batch<A> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.shared.give_back(buffer);
        }
    }
}

impl<A: Allocate> fmt::Debug for Batch<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("rows", &self.rows)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
