//! Tensors of what runs again: others than those of what it repeats.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::execution::StorageId;
use steptime_step::{Call, OpId, Patch, Step, TensorId};

/// The tensors of ops that run again.
pub(crate) struct Names<'s> {
    step: &'s Step,
    /// Memory that is made again.
    remade: FxHashSet<StorageId>,
    /// Tensors that the ops give.
    given: FxHashSet<TensorId>,
    known: FxHashMap<TensorId, TensorId>,
    storages: FxHashMap<StorageId, StorageId>,
    /// The first storage that no tensor has yet.
    pub next_storage: u32,
}

/// What an op and those inside it were called with.
pub(crate) fn calls(step: &Step, op: OpId) -> impl Iterator<Item = &Call> + use<'_> {
    step.subtree(op).into_iter().filter_map(|op| step.ops[op].call.as_deref())
}

/// The first storage that no tensor of a step has.
pub(crate) fn free_storage(step: &Step) -> u32 {
    step.tensors.iter().filter_map(|row| row.storage).map(|storage| storage.0 + 1).max().unwrap_or(0)
}

impl<'s> Names<'s> {
    /// Of ops that run again, and the memory that they make.
    pub fn of(step: &'s Step, roots: &[OpId], remade: FxHashSet<StorageId>, next_storage: u32) -> Names<'s> {
        let mut given = FxHashSet::default();
        for call in roots.iter().flat_map(|&root| calls(step, root)) {
            given.extend(call.gives().filter(|made| !call.takes().any(|taken| taken == *made)));
        }
        Names {
            step,
            remade,
            given,
            known: FxHashMap::default(),
            storages: FxHashMap::default(),
            next_storage,
        }
    }

    pub fn is_remade(&self, tensor: TensorId) -> bool {
        self.step.tensors[tensor].storage.is_some_and(|storage| self.remade.contains(&storage))
    }

    /// A tensor of an op that runs again.
    pub fn of_again(&mut self, tensor: TensorId, patch: &mut Patch) -> TensorId {
        if self.given.contains(&tensor) { self.fresh(tensor, patch) } else { self.of_saved(tensor, patch) }
    }

    /// A tensor of an op of the backward pass.
    pub fn of_saved(&mut self, tensor: TensorId, patch: &mut Patch) -> TensorId {
        if usize::from(tensor) < self.step.tensors.len() && self.is_remade(tensor) {
            self.fresh(tensor, patch)
        } else {
            tensor
        }
    }

    fn fresh(&mut self, tensor: TensorId, patch: &mut Patch) -> TensorId {
        let (step, row) = (self.step, &self.step.tensors[tensor]);
        let storage = row.storage.map(|storage| {
            if !self.remade.contains(&storage) {
                return storage;
            }
            *self.storages.entry(storage).or_insert_with(|| {
                self.next_storage += 1;
                StorageId(self.next_storage - 1)
            })
        });
        *self.known.entry(tensor).or_insert_with(|| patch.tensor_in(step, row.value.clone(), storage))
    }
}
