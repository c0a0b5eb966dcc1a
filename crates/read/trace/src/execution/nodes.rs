//! Nodes of an execution trace, in columns.

use super::ValueRange;
use crate::columns::columns;
use crate::strings::NameId;

columns! {
    /// Nodes, by id: ids grow in the order in which ops begin, so parents come before children.
    pub struct Nodes of Node {
        /// Id; nodes, tensors and storages share one counter.
        id: u64,
        /// Name of the op or label.
        name: NameId,
        /// Id of the op around it, on the same thread.
        parent: u64,
        /// `Record function id` of the same op in Kineto; 0 if there is none.
        rf_id: u64,
        /// For a backward op, the forward thread's op around its forward op; 0 if there is none.
        fw_parent: u64,
        /// Sequence number that links forward and backward; -1 if there is none.
        seq_id: i64,
        /// PyTorch's `RecordScope`: 0 function, 1 backward function, 7 user scope.
        scope: u8,
        /// Thread, in the profiler's numbering.
        tid: u64,
        /// For a backward op, the thread of its forward op; 0 if there is none.
        fw_tid: u64,
        /// Signature of the op; empty for labels.
        op_schema: NameId,
        /// Generator of the kernel, for example `triton`; empty if there is none.
        kernel_backend: NameId,
        /// File of the generated kernel; empty if there is none.
        kernel_file: NameId,
        /// Inputs of the op.
        inputs: ValueRange,
        /// Outputs of the op.
        outputs: ValueRange,
    }
}

impl Nodes {
    /// Returns the row of the node with this id; the first one if several share it.
    #[must_use]
    pub fn find(&self, id: u64) -> Option<usize> {
        let row = self.id.partition_point(|&other| other < id);
        (self.id.get(row) == Some(&id)).then_some(row)
    }
}
