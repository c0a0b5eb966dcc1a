//! Ids of nodes, tensors and storages.

steptime_trace::ids! {
    /// Node, by its position in id order, which is also its row in [`ExecutionTrace::nodes`](steptime_trace::ExecutionTrace::nodes).
    NodeId;
}

impl NodeId {
    /// Returns the node at an index; the reader counts in `u32` too.
    pub(crate) fn at(index: usize) -> NodeId {
        NodeId(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// Tensor from creation to end of life; its address may be reused by others later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub u32);

/// Block of memory from allocation to release; views share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageId(pub u32);

impl TensorId {
    /// The position as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl StorageId {
    /// The position as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
