//! The forward pass as a list of ops, and which of them makes and takes each piece of memory.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::execution::StorageId;
use steptime_step::{OpId, Step, TensorId};

use crate::names::calls;
use crate::passes::Passes;

/// The ops of a forward pass, and the memory between them.
pub(super) struct Forward<'s> {
    pub step: &'s Step,
    /// Outermost ops of the script, in order.
    pub roots: Vec<OpId>,
    /// Functions of the backward pass, in order.
    pub functions: Vec<OpId>,
    /// For memory that is made in the forward pass, the place of the op that makes it, and its bytes.
    pub made: FxHashMap<StorageId, (usize, u64)>,
    /// The place of the op that takes it last.
    pub taken_last: FxHashMap<StorageId, usize>,
    /// What the backward pass takes of it.
    pub saved: FxHashSet<StorageId>,
}

impl<'s> Forward<'s> {
    pub fn of(step: &'s Step) -> Forward<'s> {
        let Passes { forward: roots, backward: functions, .. } = Passes::of(step);
        let mut forward = Forward {
            step,
            roots,
            functions,
            made: FxHashMap::default(),
            taken_last: FxHashMap::default(),
            saved: FxHashSet::default(),
        };
        forward.memory();
        forward
    }

    fn memory(&mut self) {
        let mut older: FxHashSet<StorageId> = FxHashSet::default();
        for (at, &root) in self.roots.iter().enumerate() {
            for call in calls(self.step, root) {
                for tensor in call.takes() {
                    let Some(storage) = self.step.tensors[tensor].storage else { continue };
                    self.taken_last.insert(storage, at);
                    if !self.made.contains_key(&storage) {
                        older.insert(storage);
                    }
                }
                for tensor in call.gives() {
                    let row = &self.step.tensors[tensor];
                    let Some(storage) = row.storage.filter(|storage| !older.contains(storage)) else {
                        continue;
                    };
                    let (_, bytes) = self.made.entry(storage).or_insert((at, 0));
                    *bytes = (*bytes).max(row.value.bytes());
                }
            }
        }
        for &function in &self.functions {
            let taken = self.taken(function);
            self.saved.extend(taken.filter(|storage| self.made.contains_key(storage)));
        }
    }

    /// Memory that an op takes, and what is inside it.
    pub fn taken(&self, op: OpId) -> impl Iterator<Item = StorageId> + use<'s> {
        let step = self.step;
        let takes = calls(step, op).flat_map(|call| call.takes().collect::<Vec<TensorId>>());
        takes.filter_map(|tensor| step.tensors[tensor].storage)
    }
}
