//! Identity of memory: the storage of each tensor, and the storages that views and copies of inputs share.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Dtype;
use steptime_graph::execution::StorageId;
use steptime_step::{OpId, TensorId};
use steptime_tensor::Layout;

use crate::described::DescribedStep;
use crate::slices::Access;

/// A piece of memory, by its position in [`Places::memories`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryId(pub(crate) usize);

/// Identity of a tensor's memory before views are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// A storage, and the bytes of its elements: views of a cast tensor keep the storage from before the cast.
    Storage(StorageId, u64),
    Tensor(TensorId),
}

/// A piece of memory, and its uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// Largest end of a tensor in it.
    pub(crate) bytes: u64,
    /// First and last instruction that uses it.
    pub(crate) life: Option<[usize; 2]>,
    /// Whether an instruction writes all or part of it before any reads it.
    pub(crate) made: bool,
    /// A tensor with this memory.
    pub(crate) tensor: Option<TensorId>,
}

/// All memory of a program.
pub(crate) struct Places<'d> {
    pub(crate) described: &'d DescribedStep,
    pub(crate) memories: Vec<Memory>,
    /// Memory of each identity, with the distance of its first element, in elements.
    known: FxHashMap<Key, (MemoryId, i64)>,
    /// Indices and values of sparse tensors; of a sum those of each of its terms.
    pub(crate) sparse: FxHashMap<TensorId, Vec<[TensorId; 2]>>,
    /// Strides of tensors that are stored within others.
    pub(crate) strides: FxHashMap<TensorId, Vec<i64>>,
    /// Numbers of zeros behind each row.
    pub(crate) pads: FxHashMap<TensorId, usize>,
    /// Copies that are not needed: their readers take the source.
    pub(crate) shared: FxHashSet<OpId>,
}

/// Memory and layout of a tensor.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    pub(crate) memory: MemoryId,
    pub(crate) layout: Layout,
    pub(crate) dtype: Dtype,
    /// Number of zeros behind each row.
    pub(crate) pad: usize,
}

impl<'d> Places<'d> {
    pub(crate) fn new(described: &'d DescribedStep) -> Places<'d> {
        Places {
            described,
            memories: Vec::new(),
            known: FxHashMap::default(),
            sparse: FxHashMap::default(),
            strides: FxHashMap::default(),
            pads: FxHashMap::default(),
            shared: FxHashSet::default(),
        }
    }

    fn key(&self, tensor: TensorId) -> Key {
        if self.known.contains_key(&Key::Tensor(tensor)) {
            return Key::Tensor(tensor);
        }
        let row = &self.described.step.tensors[tensor];
        row.storage.map_or(Key::Tensor(tensor), |storage| Key::Storage(storage, row.value.dtype.size()))
    }

    /// Offset of a tensor within its identity. A tensor of a rule has its own, which begins with it.
    fn own_offset(&self, tensor: TensorId) -> i64 {
        let row = &self.described.step.tensors[tensor];
        row.storage.map_or(0, |_| i64::try_from(row.value.offset).unwrap_or(i64::MAX))
    }

    /// The memory of a tensor, and the position of its first element.
    fn base(&mut self, tensor: TensorId) -> (MemoryId, i64) {
        let key = self.key(tensor);
        let next = MemoryId(self.memories.len());
        let (memory, distance) = *self.known.entry(key).or_insert((next, 0));
        if memory == next {
            self.memories.push(Memory { tensor: Some(tensor), ..Memory::default() });
        }
        (memory, distance.saturating_add(self.own_offset(tensor)))
    }

    /// Memory and layout of a dense tensor.
    pub(crate) fn locate(&mut self, tensor: TensorId) -> Result<Located, String> {
        let (memory, offset) = self.base(tensor);
        let value = &self.described.step.tensors[tensor].value;
        if value.is_sparse() {
            return Err("it takes a sparse tensor".to_owned());
        }
        let sizes = |all: &[i64]| -> Option<Vec<usize>> {
            all.iter().map(|&size| usize::try_from(size).ok()).collect()
        };
        let layout = || {
            let strides = self.strides.get(&tensor).map_or(&value.strides[..], |own| &own[..]);
            let (shape, strides) = (sizes(&value.shape)?, sizes(strides)?);
            Layout::new(&shape, &strides, usize::try_from(offset).ok()?).ok()
        };
        let layout = layout().ok_or("a tensor begins before its memory, or exceeds all memory")?;
        let pad = self.pads.get(&tensor).copied().unwrap_or(0);
        let end = layout.last().map_or(0, |last| (last + pad) as u64 + 1).saturating_mul(value.dtype.size());
        let bytes = &mut self.memories[memory.0].bytes;
        *bytes = (*bytes).max(end);
        Ok(Located { memory, layout, dtype: value.dtype, pad })
    }

    /// New memory of a tensor, besides its own.
    pub(crate) fn add(&mut self, tensor: TensorId, bytes: u64) -> MemoryId {
        self.memories.push(Memory { tensor: Some(tensor), bytes, ..Memory::default() });
        MemoryId(self.memories.len() - 1)
    }

    /// Notes the use of memory by the next instruction. Returns whether the memory has elements after that.
    pub(crate) fn touch(&mut self, memory: MemoryId, access: Access) -> bool {
        let made = &mut self.memories[memory.0].made;
        *made |= access == Access::Write;
        *made
    }

    /// Extends the lifetime of memory to an instruction.
    pub(crate) fn lives_at(&mut self, memory: MemoryId, at: usize) {
        let life = self.memories[memory.0].life.get_or_insert([at, at]);
        life[1] = life[1].max(at);
    }

    /// Makes a tensor a view of another, `shift` elements after its first one. Returns whether it is one: memory that is in use already cannot
    /// become a view.
    pub(crate) fn alias(&mut self, view: TensorId, of: TensorId, shift: i64) -> bool {
        let (memory, offset) = self.base(of);
        let (key, own) = (self.key(view), self.own_offset(view));
        let known = self.known.get(&key).map(|&(known, _)| known);
        let is_narrow = self.described.step.tensors[view].value.dtype == Dtype::Bf16;
        let key = match known {
            None => key,
            Some(known) if known == memory => return true,
            // Several casts of one storage: each has views of its own.
            Some(_) if is_narrow => Key::Tensor(view),
            Some(_) => return false,
        };
        self.known.insert(key, (memory, offset.saturating_add(shift).saturating_sub(own)));
        true
    }

    /// Whether a tensor has been placed in memory, alone or as a view.
    pub(crate) fn is_placed(&self, tensor: TensorId) -> bool {
        self.known.contains_key(&self.key(tensor))
    }

    /// The memory of a placed tensor.
    pub(crate) fn memory_of(&self, tensor: TensorId) -> Option<MemoryId> {
        self.known.get(&self.key(tensor)).map(|&(memory, _)| memory)
    }
}
