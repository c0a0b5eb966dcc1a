//! Parameters sharded over ranks: each is cut along its first dimension. A rank is taken to have the first part, which has the most rows.

use steptime_aten::{Dtype, Place, Tensor};
use steptime_graph::execution::StorageId;
use steptime_step::{Patch, StepIr, TensorId};

use super::units::Unit;
use crate::exchange::flat;

/// A parameter, and the part of it that a rank keeps.
#[derive(Debug, Clone)]
pub(super) struct Shard {
    /// The whole parameter, as an input of the forward pass.
    pub whole: TensorId,
    /// The rank's part.
    pub part: TensorId,
    /// The part, flattened, as it is sent.
    pub sent: TensorId,
    /// Elements of the part.
    pub elements: i64,
    /// Gradient of the part, ...
    pub gradient: TensorId,
    /// ... and its layout in the output of the reduction.
    pub lies: Tensor,
}

/// The parameters of a unit.
#[derive(Debug, Clone)]
pub(super) struct Shards {
    pub all: Vec<Shard>,
    /// Elements of all parts together.
    pub elements: i64,
    pub dtype: Dtype,
    /// Output of the reduction, which holds the gradients of all parts.
    pub reduced: TensorId,
}

/// Memory of tensors that a patch adds.
pub(super) struct Memory<'s, 'p> {
    pub step: &'s StepIr,
    pub patch: &'p mut Patch,
    pub next_storage: u32,
}

impl Memory<'_, '_> {
    /// A tensor in new memory.
    pub fn own(&mut self, value: Tensor) -> TensorId {
        let storage = self.storage();
        self.within(value, Some(storage))
    }

    /// A tensor in given memory. The memory becomes its place where it has none: caches hold data by place.
    pub fn within(&mut self, mut value: Tensor, storage: Option<StorageId>) -> TensorId {
        if let Some(storage) = storage.filter(|_| value.place.key().is_none()) {
            value.place = Place::storage(storage.0, 0);
        }
        self.patch.tensor_in(self.step, value, storage)
    }

    pub fn storage(&mut self) -> StorageId {
        self.next_storage += 1;
        StorageId(self.next_storage - 1)
    }

    /// A tensor of the step, or of the patch.
    pub fn value(&self, tensor: TensorId) -> &Tensor {
        self.patch.added(self.step, tensor).unwrap_or_else(|| &self.step.tensors[tensor].value)
    }

    /// The memory of a tensor that the patch added.
    pub fn storage_of(&self, tensor: TensorId) -> Option<StorageId> {
        self.patch.added_storage(self.step, tensor)
    }
}

/// Shape of a rank's part: its rows are rounded up.
pub(super) fn part_of(shape: &[i64], ranks: u32) -> Vec<i64> {
    let mut part = shape.to_vec();
    if let Some(rows) = part.first_mut() {
        *rows = (*rows as u64).div_ceil(u64::from(ranks.max(1))) as i64;
    }
    part
}

/// Cuts the parameters of a unit.
pub(super) fn cut(memory: &mut Memory<'_, '_>, unit: &Unit, ranks: u32) -> Shards {
    let step = memory.step;
    let dtype = unit.parameters.first().map_or(Dtype::F32, |&id| step.tensors[id].value.dtype);
    let parts: Vec<(TensorId, Tensor)> = unit
        .parameters
        .iter()
        .map(|&whole| {
            let value = &step.tensors[whole].value;
            (whole, Tensor::strided(&part_of(&value.shape, ranks), &value.strides, value.dtype))
        })
        .collect();
    let elements = parts.iter().map(|(_, part)| part.numel() as i64).sum();
    let reduced = memory.own(flat(elements, dtype));
    let gradients = memory.storage_of(reduced);
    let mut offset = 0;
    let shard = |(whole, value): (TensorId, Tensor)| {
        let count = value.numel() as i64;
        let part = memory.own(value.clone());
        let own = memory.storage_of(part);
        let sent = memory.within(flat(count, value.dtype), own);
        let lies = Tensor { offset, ..value };
        let gradient = memory.within(lies.clone(), gradients);
        offset += count as u64;
        Shard { whole, part, sent, elements: count, gradient, lies }
    };
    let all = parts.into_iter().map(shard).collect();
    Shards { all, elements, dtype, reduced }
}
