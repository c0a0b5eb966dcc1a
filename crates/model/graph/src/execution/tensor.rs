//! Tensors and storages, one per lifetime.

use super::ids::{NodeId, StorageId, TensorId};
use super::lists::Lists;
use steptime_trace::{Bytes, NameId};

/// Shape or strides, see [`Tensors::dims`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DimRange {
    start: u32,
    end: u32,
}

/// Tensor, from creation to end of life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor {
    /// Id in the trace, which other tensors may have had before or after.
    pub raw_id: u64,
    /// Shape, see [`Tensors::shape`].
    pub shape: DimRange,
    /// Strides in elements, if recorded.
    pub strides: Option<DimRange>,
    /// Element type, for example `float`.
    pub dtype: NameId,
    /// Device, for example `cuda:0`; empty if not recorded.
    pub device: NameId,
    /// Memory of its elements.
    pub storage: StorageId,
    /// Offset of the first element in the storage, in elements.
    pub offset: u64,
    /// Bytes per element.
    pub itemsize: u32,
    /// Number of elements.
    pub numel: u64,
    /// Innermost node that made it; `None` if it is older than the trace.
    pub producer: Option<NodeId>,
    /// Node in which it first occurs: the producer or a node inside it, or any node if there is no producer.
    pub seen: NodeId,
    /// Whether its storage already had another tensor.
    pub is_view: bool,
}

impl Tensor {
    /// Returns the bytes of its elements.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.numel.saturating_mul(u64::from(self.itemsize)))
    }
}

/// Block of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Storage {
    /// Device, for example `cuda:0`; empty if not recorded.
    pub device: NameId,
    /// Id in the trace, derived from its address: storages with disjoint lifetimes can share it.
    pub address: u64,
    /// Bytes that its tensors need; the allocation may be larger.
    pub bytes: Bytes,
    /// Innermost node that allocated it; `None` if it is older than the trace.
    pub producer: Option<NodeId>,
    /// Node in which it first occurs: the producer or a node inside it, or any node if there is no
    /// producer.
    pub seen: NodeId,
}

/// Tensors and storages of a graph.
#[derive(Clone, Debug, Default)]
pub struct Tensors {
    tensors: Vec<Tensor>,
    storages: Vec<Storage>,
    dims: Vec<i64>,
    consumers: Lists<NodeId>,
}

impl Tensors {
    /// Returns the number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Returns all tensors, by id.
    #[must_use]
    pub fn all(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns all storages, by id.
    #[must_use]
    pub fn storages(&self) -> &[Storage] {
        &self.storages
    }

    /// Returns a tensor.
    ///
    /// # Panics
    /// If the id is of another graph and out of bounds.
    #[must_use]
    pub fn get(&self, tensor: TensorId) -> &Tensor {
        &self.tensors[tensor.index()]
    }

    /// Returns a storage.
    ///
    /// # Panics
    /// If the id is of another graph and out of bounds.
    #[must_use]
    pub fn storage(&self, storage: StorageId) -> &Storage {
        &self.storages[storage.index()]
    }

    /// Returns a shape or strides.
    ///
    /// # Panics
    /// If the range is of another graph and out of bounds.
    #[must_use]
    pub fn dims(&self, range: DimRange) -> &[i64] {
        &self.dims[range.start as usize..range.end as usize]
    }

    /// Returns the shape of a tensor.
    ///
    /// # Panics
    /// If the id is of another graph and out of bounds.
    #[must_use]
    pub fn shape(&self, tensor: TensorId) -> &[i64] {
        self.dims(self.get(tensor).shape)
    }

    /// Returns the strides of a tensor in elements, if recorded.
    ///
    /// # Panics
    /// If the id is of another graph and out of bounds.
    #[must_use]
    pub fn strides(&self, tensor: TensorId) -> Option<&[i64]> {
        self.get(tensor).strides.map(|range| self.dims(range))
    }

    /// Returns the nodes that take a tensor, in id order, at every level of nesting.
    #[must_use]
    pub fn consumers(&self, tensor: TensorId) -> &[NodeId] {
        self.consumers.get(tensor.index())
    }

    pub(super) fn add_dims(&mut self, dims: &[i64]) -> DimRange {
        let start = position(self.dims.len());
        self.dims.extend_from_slice(dims);
        DimRange { start, end: position(self.dims.len()) }
    }

    /// Adds a tensor; its storage grows as needed.
    pub(super) fn add(&mut self, tensor: Tensor) -> TensorId {
        let needs = self.extent(&tensor);
        let storage = &mut self.storages[tensor.storage.index()].bytes;
        *storage = (*storage).max(needs);
        self.tensors.push(tensor);
        TensorId(position(self.tensors.len() - 1))
    }

    /// Sets the producer of a tensor, if it has none yet.
    pub(super) fn claim(&mut self, tensor: TensorId, node: NodeId) {
        self.tensors[tensor.index()].producer.get_or_insert(node);
    }

    /// Sets the allocating node of a storage, if it has none yet.
    pub(super) fn claim_storage(&mut self, storage: StorageId, node: NodeId) {
        self.storages[storage.index()].producer.get_or_insert(node);
    }

    pub(super) fn add_storage(&mut self, storage: Storage) -> StorageId {
        self.storages.push(storage);
        StorageId(position(self.storages.len() - 1))
    }

    /// Sets the consumers of all tensors, from `(tensor, node)` in node order.
    pub(super) fn set_consumers(&mut self, uses: &[(TensorId, NodeId)]) {
        let pairs = uses.iter().map(|&(tensor, node)| (tensor.index(), node));
        self.consumers = Lists::from_pairs(self.tensors.len(), pairs);
    }

    /// Returns the bytes of its storage that a tensor spans, from the start of the storage.
    fn extent(&self, tensor: &Tensor) -> Bytes {
        if tensor.numel == 0 {
            return Bytes(0);
        }
        let shape = self.dims(tensor.shape);
        let span = match tensor.strides.map(|strides| self.dims(strides)) {
            Some(strides) if strides.len() == shape.len() => {
                let reach = |(&size, &stride): (&i64, &i64)| {
                    let (size, stride) = (u64::try_from(size), u64::try_from(stride));
                    size.unwrap_or(0).saturating_sub(1).saturating_mul(stride.unwrap_or(0))
                };
                let reaches = shape.iter().zip(strides).map(reach);
                reaches.fold(1, u64::saturating_add)
            }
            _ => tensor.numel,
        };
        Bytes(tensor.offset.saturating_add(span).saturating_mul(u64::from(tensor.itemsize)))
    }
}

/// A length as a position; the reader counts tensors and dimensions in `u32` too.
fn position(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
