//! Tensors and storages that are at each address at the moment.

use super::ids::{NodeId, StorageId, TensorId};
use rustc_hash::FxHashMap;
use steptime_trace::NameId;

/// Latest tensor and storage of each id of the trace, and the last node that had them as input.
#[derive(Default)]
pub(super) struct Addresses {
    tensors: FxHashMap<(u64, Option<NameId>), TensorId>,
    storages: FxHashMap<u64, StorageId>,
    /// Last ended node that had this tensor, or storage, as input.
    input_of: FxHashMap<TensorId, NodeId>,
    storage_input_of: FxHashMap<StorageId, NodeId>,
}

impl Addresses {
    /// Returns the current tensor of an id of the trace, on a device if ids are distinct only per device.
    pub(super) fn tensor(&self, raw_id: u64, device: Option<NameId>) -> Option<TensorId> {
        self.tensors.get(&(raw_id, device)).copied()
    }

    /// Returns the current storage of an id of the trace.
    pub(super) fn storage(&self, raw_id: u64) -> Option<StorageId> {
        self.storages.get(&raw_id).copied()
    }

    /// Sets the current tensor of an id of the trace.
    pub(super) fn set_tensor(&mut self, raw_id: u64, device: Option<NameId>, tensor: TensorId) {
        self.tensors.insert((raw_id, device), tensor);
    }

    /// Sets the current storage of an id of the trace.
    pub(super) fn set_storage(&mut self, raw_id: u64, storage: StorageId) {
        self.storages.insert(raw_id, storage);
    }

    /// Records that an ended node had a tensor as input.
    pub(super) fn set_input(&mut self, tensor: TensorId, storage: StorageId, node: NodeId) {
        self.input_of.insert(tensor, node);
        self.storage_input_of.insert(storage, node);
    }

    /// Whether a node is the last one that had a tensor as input.
    pub(super) fn is_input(&self, tensor: TensorId, node: NodeId) -> bool {
        self.input_of.get(&tensor) == Some(&node)
    }

    /// Whether a node is the last one that had a tensor of a storage as input.
    pub(super) fn is_storage_of_input(&self, storage: StorageId, node: NodeId) -> bool {
        self.storage_input_of.get(&storage) == Some(&node)
    }
}
