//! Tensors of what runs again: others than those of what it repeats.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::execution::StorageId;
use steptime_step::{Patch, Step, TensorId};

use super::forward::{Forward, calls};

/// The tensors of ops that run again.
pub(super) struct Names<'s> {
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

impl<'s> Names<'s> {
    pub fn of(forward: &Forward<'s>, places: Range<usize>, next_storage: u32) -> Names<'s> {
        let made = forward.made.iter().filter(|(_, (at, _))| places.contains(at));
        let mut given = FxHashSet::default();
        for call in forward.roots[places.clone()].iter().flat_map(|&root| calls(forward.step, root)) {
            given.extend(call.gives().filter(|made| !call.takes().any(|taken| taken == *made)));
        }
        Names {
            step: forward.step,
            remade: made.map(|(storage, _)| *storage).collect(),
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
