//! Memory of tensors that were not recorded.

use steptime_graph::execution::ExecutionGraph;

use crate::call::Tensor;
use crate::memory_key::Place;

/// Storage numbers that no recorded tensor has.
#[derive(Debug)]
pub(super) struct NewMemory {
    next: u32,
}

impl NewMemory {
    pub fn new(trace: &ExecutionGraph) -> NewMemory {
        NewMemory { next: u32::try_from(trace.tensors.storages().len()).unwrap_or(u32::MAX) }
    }

    /// Returns a tensor like another, in its own memory.
    pub fn like(&mut self, tensor: &Tensor) -> Tensor {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        Tensor { place: Place::storage(number, 0), offset: 0, ..tensor.clone() }
    }
}
