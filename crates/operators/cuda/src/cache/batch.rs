//! Batches on their way through the cache.

use crate::embedding::{Lookups, RowOptimizer, Tables};

/// What a batch does with its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads them only.
    Read,
    /// It changes them: they are written back before they leave.
    Train,
}

/// A batch whose rows are on the device.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The slots, as tables.
    pub tables: &'a mut Tables<'static>,
    /// The batch's lookups, by slot; -1 for rows that are not there.
    pub lookups: Lookups<'a>,
    /// The optimizer, where [`RowCache::train`](super::RowCache::train) made one.
    pub optimizer: Option<&'a mut RowOptimizer>,
}

/// A batch that was asked for: where its lookups are, and its number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Asked {
    indices: u64,
    offsets: u64,
    pub(super) lookups: usize,
    pub(super) number: u32,
    /// Which buffer its slots are in.
    pub(super) place: usize,
}

impl Asked {
    pub(super) fn new(lookups: &Lookups<'_>, number: u32, place: usize) -> Asked {
        let (indices, offsets) = (lookups.indices().address(), lookups.offsets().address());
        Asked { indices, offsets, lookups: lookups.len(), number, place }
    }

    pub(super) fn is(&self, lookups: &Lookups<'_>) -> bool {
        *self == Asked::new(lookups, self.number, self.place)
    }
}
