//! Groups of tensors that have one type: views of one memory, and copies.

use rustc_hash::FxHashMap;
use steptime_step::{StepIr, TensorId};

use super::op_types::OpTypes;

/// Tensors of one type, by the group of each.
#[derive(Debug, Default)]
pub(super) struct SharedMemory {
    /// The group's number of each tensor, and the tensors of each group.
    numbers: FxHashMap<TensorId, usize>,
    groups: Vec<Vec<TensorId>>,
}

impl SharedMemory {
    /// Groups of the tensors of a step.
    pub fn find(step: &StepIr) -> SharedMemory {
        let mut shared = SharedMemory::default();
        let mut first_of = FxHashMap::default();
        for (tensor, row) in step.tensors.iter_enumerated() {
            shared.numbers.insert(tensor, shared.groups.len());
            shared.groups.push(vec![tensor]);
            // A view of a cast tensor keeps the storage that it had before the cast.
            if let Some(storage) = row.storage {
                let first = *first_of.entry((storage, row.value.dtype)).or_insert(tensor);
                shared.join(first, tensor);
            }
        }
        for op in step.running() {
            let row = &step.ops[op];
            let call = row.call.as_deref().filter(|_| OpTypes::from_name(&row.name) == Some(OpTypes::View));
            let Some((call, from)) = call.and_then(|call| Some((call, call.takes().next()?))) else {
                continue;
            };
            call.gives().for_each(|to| shared.join(from, to));
        }
        shared
    }

    /// Makes two groups one.
    pub fn join(&mut self, one: TensorId, other: TensorId) {
        let (into, from) = (self.number(one), self.number(other));
        if into != from {
            let moved = std::mem::take(&mut self.groups[from]);
            for &tensor in &moved {
                self.numbers.insert(tensor, into);
            }
            self.groups[into].extend(moved);
        }
    }

    /// Number of the group of a tensor.
    pub fn number(&self, tensor: TensorId) -> usize {
        self.numbers.get(&tensor).copied().unwrap_or(usize::MAX)
    }

    /// The tensors of a group.
    pub fn tensors(&self, number: usize) -> &[TensorId] {
        self.groups.get(number).map_or(&[], Vec::as_slice)
    }
}
