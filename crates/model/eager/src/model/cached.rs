//! Rows that move between a cache on the GPU and the host memory with all rows of a table.

use steptime_aten::Dtype;

use crate::eager::Eager;
use crate::ops::copy::fetch_;
use crate::tensor::{Tensor, contiguous};

/// Transfers before a lookup in a table: the cache evicts rows, then loads the missing rows of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheTransfers {
    /// Number of loaded rows, and of evicted rows: in a full cache each loaded row replaces a changed one.
    pub(super) rows: i64,
    /// Numbers per element: the element itself, and its optimizer states.
    pub(super) numbers: i64,
}

impl CacheTransfers {
    /// No transfers, for a table on the GPU.
    pub(super) const NONE: CacheTransfers = CacheTransfers { rows: 0, numbers: 0 };

    /// Writes rows back, then loads others, on the stream of the lookups, which wait for them. Host memory is pinned.
    pub(super) fn run(&self, e: &mut Eager, table: &Tensor) {
        let rows = self.rows.min(table.size(0));
        if rows < 1 {
            return;
        }
        let learning = std::mem::replace(&mut e.learning, false);
        e.label("## row cache ##", |e| {
            let shape = [rows, table.size(1)];
            let slots = e.view(table, &shape, &contiguous(&shape), 0);
            let host = e.pinned(&shape, Dtype::F32);
            for _ in 0..self.numbers {
                fetch_(e, &host, &slots);
            }
            for _ in 0..self.numbers {
                fetch_(e, &slots, &host);
            }
        });
        e.learning = learning;
    }
}
