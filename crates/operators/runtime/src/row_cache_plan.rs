//! Row caches of a program: their tables, and the inputs that look them up.

use std::ops::Range;

use steptime_ops::embedding::Pooling;

use crate::places::MemoryId;

/// The row cache of the tables of a call.
#[derive(Debug, Clone)]
pub(crate) struct RowCachePlan {
    pub(crate) tables: Vec<CachedRows>,
    pub(crate) pooling: Pooling,
    /// Number of bags of a table.
    pub(crate) bags: usize,
    /// Bytes of the indices and of the offsets among the inputs.
    pub(crate) indices: Range<usize>,
    pub(crate) offsets: Range<usize>,
}

/// A table in host memory.
#[derive(Debug, Clone)]
pub(crate) struct CachedRows {
    pub(crate) name: String,
    pub(crate) memory: MemoryId,
    pub(crate) shape: [usize; 2],
    /// Number of rows on the device.
    pub(crate) slots: usize,
}
