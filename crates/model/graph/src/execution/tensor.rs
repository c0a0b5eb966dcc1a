//! Tensors and storages, one for each life.

use super::edges::Lists;
use super::ids::{NodeId, StorageId, TensorId};
use steptime_trace::{Bytes, NameId};

/// A shape or strides, see [`Tensors::dims`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DimRange {
    start: u32,
    end: u32,
}

/// A tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tensor {
    /// Its id in the trace, which other tensors may have had.
    pub raw_id: u64,
    /// Its shape, see [`Tensors::shape`].
    pub shape: DimRange,
    /// Its strides in elements, where recorded.
    pub strides: Option<DimRange>,
    /// The element type, `float`.
    pub dtype: NameId,
    /// Where it lives, `cuda:0`; empty where not recorded.
    pub device: NameId,
    /// Its memory.
    pub storage: StorageId,
    /// Where in the storage it begins, in elements.
    pub offset: u64,
    /// Bytes an element.
    pub itemsize: u32,
    /// How many elements it has.
    pub numel: u64,
    /// The innermost node that made it; `None` when it is older than the trace.
    pub producer: Option<NodeId>,
    /// The node that made it, or took it first: the producer, something inside it, or any where there is none.
    pub seen: NodeId,
    /// Whether its storage had another tensor before.
    pub is_view: bool,
}

impl Tensor {
    /// The bytes of its elements.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.numel.saturating_mul(u64::from(self.itemsize)))
    }
}

/// A piece of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Storage {
    /// Where it is, `cuda:0`; empty where not recorded.
    pub device: NameId,
    /// Its id in the trace, which follows its address: storages that live one after the other can share it.
    pub address: u64,
    /// What its tensors need of it; it may be larger.
    pub bytes: Bytes,
    /// The innermost node that allocated it; `None` when it is older than the trace.
    pub producer: Option<NodeId>,
    /// The node that allocated it, or used it first: the producer, something inside it, or any where there is
    /// none.
    pub seen: NodeId,
}

/// All tensors and storages of a graph.
#[derive(Clone, Debug, Default)]
pub struct Tensors {
    tensors: Vec<Tensor>,
    storages: Vec<Storage>,
    dims: Vec<i64>,
    consumers: Lists<NodeId>,
}

impl Tensors {
    /// How many tensors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// All tensors, by id.
    #[must_use]
    pub fn all(&self) -> &[Tensor] {
        &self.tensors
    }

    /// All storages, by id.
    #[must_use]
    pub fn storages(&self) -> &[Storage] {
        &self.storages
    }

    /// One tensor.
    ///
    /// # Panics
    /// When the id is of another graph and out of bounds.
    #[must_use]
    pub fn get(&self, tensor: TensorId) -> &Tensor {
        &self.tensors[tensor.index()]
    }

    /// One storage.
    ///
    /// # Panics
    /// When the id is of another graph and out of bounds.
    #[must_use]
    pub fn storage(&self, storage: StorageId) -> &Storage {
        &self.storages[storage.index()]
    }

    /// A shape or strides.
    ///
    /// # Panics
    /// When the range is of another graph and out of bounds.
    #[must_use]
    pub fn dims(&self, range: DimRange) -> &[i64] {
        &self.dims[range.start as usize..range.end as usize]
    }

    /// The shape of a tensor.
    ///
    /// # Panics
    /// When the id is of another graph and out of bounds.
    #[must_use]
    pub fn shape(&self, tensor: TensorId) -> &[i64] {
        self.dims(self.get(tensor).shape)
    }

    /// The strides of a tensor in elements, where recorded.
    ///
    /// # Panics
    /// When the id is of another graph and out of bounds.
    #[must_use]
    pub fn strides(&self, tensor: TensorId) -> Option<&[i64]> {
        self.get(tensor).strides.map(|range| self.dims(range))
    }

    /// The nodes that take a tensor, in id order, at every level of nesting.
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

    /// Notes who made a tensor that nobody was seen to make.
    pub(super) fn claim(&mut self, tensor: TensorId, node: NodeId) {
        self.tensors[tensor.index()].producer.get_or_insert(node);
    }

    /// Notes who allocated a storage that nobody was seen to allocate.
    pub(super) fn claim_storage(&mut self, storage: StorageId, node: NodeId) {
        self.storages[storage.index()].producer.get_or_insert(node);
    }

    pub(super) fn add_storage(&mut self, storage: Storage) -> StorageId {
        self.storages.push(storage);
        StorageId(position(self.storages.len() - 1))
    }

    /// Sets who takes what, from `(tensor, node)` in node order.
    pub(super) fn set_consumers(&mut self, uses: &[(TensorId, NodeId)]) {
        let pairs = uses.iter().map(|&(tensor, node)| (tensor.index(), node));
        self.consumers = Lists::from_pairs(self.tensors.len(), pairs);
    }

    /// How far into its storage a tensor reaches.
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
