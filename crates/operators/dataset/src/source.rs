//! Sources of batches: a split on disk, or planted rows that are computed.

use std::ops::Range;

use crate::{Error, Features};

/// Rows of a source: neighbours, or a list in any order.
#[derive(Debug, Clone)]
pub enum Selection<'a> {
    /// Neighbouring rows.
    Range(Range<u64>),
    /// Rows in the order of the list.
    List(&'a [u64]),
}

impl Selection<'_> {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Selection::Range(rows) => (rows.end - rows.start) as usize,
            Selection::List(rows) => rows.len(),
        }
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a place of the selection, below its length.
    #[must_use]
    pub fn row(&self, place: usize) -> u64 {
        match self {
            Selection::Range(rows) => rows.start + place as u64,
            Selection::List(rows) => rows[place],
        }
    }
}

/// Memory of a batch's columns.
#[derive(Debug)]
pub struct Slots<'a> {
    /// Labels, `[rows]`.
    pub label: &'a mut [f32],
    /// Dense values, `[rows, columns]` row by row.
    pub dense: &'a mut [f32],
    /// Categorical columns.
    pub categorical: Vec<Slot<'a>>,
}

/// Memory of one categorical column of a batch.
#[derive(Debug)]
pub struct Slot<'a> {
    /// Indices: `[rows, hotness]`, or those of all rows one after another.
    pub values: &'a mut [i32],
    /// Offsets `[rows + 1]` of the rows' indices, if the hotness varies.
    pub offsets: Option<&'a mut [i32]>,
}

/// Rows that can be read in any order, by several threads.
pub trait Source: Send + Sync {
    /// Columns of the rows.
    fn features(&self) -> &Features;

    /// Number of rows.
    fn rows(&self) -> u64;

    /// Number of indices of the selected rows in a categorical column with offsets.
    ///
    /// # Errors
    ///
    /// If the offsets are damaged.
    fn values(&self, rows: &Selection<'_>, column: usize) -> Result<u64, Error>;

    /// Writes the selected rows.
    ///
    /// # Errors
    ///
    /// If an index is outside `0..cardinality`, or the offsets are damaged.
    fn fill(&self, rows: &Selection<'_>, slots: Slots<'_>) -> Result<(), Error>;
}
