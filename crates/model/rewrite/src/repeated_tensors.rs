//! Tensors of ops that run again, distinct from those of the original run.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::execution::StorageId;
use steptime_step::{Call, OpId, Patch, StepIr, TensorId};

/// The tensors of ops that run again.
pub(crate) struct Names<'s> {
    step: &'s StepIr,
    /// Memory that is computed again.
    remade: FxHashSet<StorageId>,
    /// Outputs of the ops.
    given: FxHashSet<TensorId>,
    known: FxHashMap<TensorId, TensorId>,
    storages: FxHashMap<StorageId, StorageId>,
    /// First unused storage id.
    pub next_storage: u32,
}

/// Calls of an op and of the ops inside it.
pub(crate) fn calls(step: &StepIr, op: OpId) -> impl Iterator<Item = &Call> + use<'_> {
    step.subtree(op).into_iter().filter_map(|op| step.ops[op].call.as_deref())
}

/// First storage id that no tensor of a step has.
pub(crate) fn free_storage(step: &StepIr) -> u32 {
    step.tensors.iter().filter_map(|row| row.storage).map(|storage| storage.0 + 1).max().unwrap_or(0)
}

impl<'s> Names<'s> {
    /// Tensors of ops that run again, and of the memory that they write.
    pub fn new(
        step: &'s StepIr,
        roots: &[OpId],
        remade: FxHashSet<StorageId>,
        next_storage: u32,
    ) -> Names<'s> {
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

    /// The tensor that replaces one of an op that runs again.
    pub fn for_repeated(&mut self, tensor: TensorId, patch: &mut Patch) -> TensorId {
        if self.given.contains(&tensor) { self.fresh(tensor, patch) } else { self.for_saved(tensor, patch) }
    }

    /// The tensor that replaces one of a backward op.
    pub fn for_saved(&mut self, tensor: TensorId, patch: &mut Patch) -> TensorId {
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
