//! The nodes of an execution trace, in columns.

use super::ValueRange;
use crate::columns::columns;
use crate::strings::NameId;

columns! {
    /// Nodes, by id: ids grow as ops are entered, so that parents come before children.
    pub struct Nodes of Node {
        /// Its id; nodes, tensors and storages share one counter.
        id: u64,
        /// The op or label.
        name: NameId,
        /// The id of the op around it, on the same thread.
        parent: u64,
        /// The `Record function id` of the same op in Kineto; 0 is none.
        rf_id: u64,
        /// For a backward op, the forward thread's op around its forward op; 0 is none.
        fw_parent: u64,
        /// The sequence number that ties forward to backward; -1 is none.
        seq_id: i64,
        /// PyTorch's `RecordScope`: 0 function, 1 backward function, 7 user scope.
        scope: u8,
        /// The thread, counted by the profiler.
        tid: u64,
        /// For a backward op, the thread of its forward op; 0 is none.
        fw_tid: u64,
        /// The op's signature; empty for labels.
        op_schema: NameId,
        /// Who generated the kernel, `triton`; empty for none.
        kernel_backend: NameId,
        /// The file of the generated kernel; empty for none.
        kernel_file: NameId,
        /// What went in.
        inputs: ValueRange,
        /// What came out.
        outputs: ValueRange,
    }
}

impl Nodes {
    /// The row of the node with this id; the first, should several share it.
    #[must_use]
    pub fn find(&self, id: u64) -> Option<usize> {
        let row = self.id.partition_point(|&other| other < id);
        (self.id.get(row) == Some(&id)).then_some(row)
    }
}
