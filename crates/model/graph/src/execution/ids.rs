//! The ids of nodes, tensors and storages.

steptime_trace::ids! {
    /// A node by its position in id order, which is also its row in [`ExecutionTrace::nodes`](steptime_trace::ExecutionTrace::nodes).
    NodeId;
}

impl NodeId {
    /// The node at an index; the reader counts in `u32` too.
    pub(crate) fn at(index: usize) -> NodeId {
        NodeId(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// A tensor from its making to its end; its address may serve others later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub u32);

/// A piece of memory from its allocation to its release; views share it.
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
