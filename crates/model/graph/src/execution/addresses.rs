//! Who lives at which address at the moment.

use super::ids::{NodeId, StorageId, TensorId};
use rustc_hash::FxHashMap;
use steptime_trace::NameId;

/// The latest tensor and storage of each id of the trace, and which node took them last.
#[derive(Default)]
pub(super) struct Addresses {
    tensors: FxHashMap<(u64, Option<NameId>), TensorId>,
    storages: FxHashMap<u64, StorageId>,
    /// The last ended node that had this tensor, or storage, as input.
    input_of: FxHashMap<TensorId, NodeId>,
    storage_input_of: FxHashMap<StorageId, NodeId>,
}

impl Addresses {
    /// The tensor that has an id of the trace now; on a device, where it has one identity on each.
    pub(super) fn tensor(&self, raw_id: u64, device: Option<NameId>) -> Option<TensorId> {
        self.tensors.get(&(raw_id, device)).copied()
    }

    /// The storage that has an id of the trace now.
    pub(super) fn storage(&self, raw_id: u64) -> Option<StorageId> {
        self.storages.get(&raw_id).copied()
    }

    /// From now on an id of the trace is this tensor.
    pub(super) fn set_tensor(&mut self, raw_id: u64, device: Option<NameId>, tensor: TensorId) {
        self.tensors.insert((raw_id, device), tensor);
    }

    /// From now on an id of the trace is this storage.
    pub(super) fn set_storage(&mut self, raw_id: u64, storage: StorageId) {
        self.storages.insert(raw_id, storage);
    }

    /// Notes that a node which ended had a tensor as input.
    pub(super) fn set_input(&mut self, tensor: TensorId, storage: StorageId, node: NodeId) {
        self.input_of.insert(tensor, node);
        self.storage_input_of.insert(storage, node);
    }

    /// Whether a node is the last that had a tensor as input.
    pub(super) fn is_input(&self, tensor: TensorId, node: NodeId) -> bool {
        self.input_of.get(&tensor) == Some(&node)
    }

    /// Whether a node is the last that had a tensor on a storage as input.
    pub(super) fn is_storage_of_input(&self, storage: StorageId, node: NodeId) -> bool {
        self.storage_input_of.get(&storage) == Some(&node)
    }
}
