//! Rows that come to a table on the GPU, and go from it, where all its rows lie in the host's memory.

use steptime_aten::Dtype;

use crate::eager::Eager;
use crate::ops::copy::fetch_;
use crate::tensor::{Tensor, contiguous};

/// What moves before a table is looked up: a cache makes room, then brings what the batch wants and it does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    /// Rows that come, and as many that go: once a cache is full each takes the place of one that was changed.
    pub(super) rows: i64,
    /// Numbers that are kept of each element: itself, and the optimizer's.
    pub(super) numbers: i64,
}

impl Moved {
    /// Of a table that lies on the GPU.
    pub(super) const NONE: Moved = Moved { rows: 0, numbers: 0 };

    /// Writes rows back, then brings others, on the stream of the lookups, which wait for them. Memory of the host is pinned.
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
