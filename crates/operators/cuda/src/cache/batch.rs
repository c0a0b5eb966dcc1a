//! Batches in the cache.

use crate::embedding::{Lookups, RowOptimizer, Tables};

/// Use of a batch's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The rows are only read.
    Read,
    /// The rows are changed: they are written back before they are evicted.
    Train,
}

/// A batch whose rows are on the device.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The slots, as tables.
    pub tables: &'a mut Tables<'static>,
    /// The batch's lookups, by slot; -1 for rows that do not exist.
    pub lookups: Lookups<'a>,
    /// The optimizer, if [`RowCache::train`](super::RowCache::train) made one.
    pub optimizer: Option<&'a mut RowOptimizer>,
}

/// A requested batch: the addresses of its lookups, and its number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BatchRequest {
    indices: u64,
    offsets: u64,
    pub(super) lookups: usize,
    pub(super) number: u32,
    /// Index of the buffer that holds its slots.
    pub(super) place: usize,
}

impl BatchRequest {
    pub(super) fn new(lookups: &Lookups<'_>, number: u32, place: usize) -> BatchRequest {
        let (indices, offsets) = (lookups.indices().address(), lookups.offsets().address());
        BatchRequest { indices, offsets, lookups: lookups.len(), number, place }
    }

    pub(super) fn is(&self, lookups: &Lookups<'_>) -> bool {
        *self == BatchRequest::new(lookups, self.number, self.place)
    }
}
