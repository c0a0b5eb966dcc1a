//! The forward pass as a list of ops, with the producer and the consumers of each piece of memory.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::execution::StorageId;
use steptime_step::{OpId, StepIr, TensorId};

use crate::passes::Passes;
use crate::repeated_tensors::calls;

/// The ops of a forward pass, and the memory between them.
pub(super) struct Forward<'s> {
    pub step: &'s StepIr,
    /// Outermost ops of the script, in order.
    pub roots: Vec<OpId>,
    /// Functions of the backward pass, in order.
    pub functions: Vec<OpId>,
    /// For memory that the forward pass writes: place of the op that writes it, and bytes.
    pub made: FxHashMap<StorageId, (usize, u64)>,
    /// Place of the last op that takes the memory.
    pub taken_last: FxHashMap<StorageId, usize>,
    /// Memory of the forward pass that the backward pass takes.
    pub saved: FxHashSet<StorageId>,
    /// Places of the ops that write saved memory, in order.
    saved_at: Vec<usize>,
    /// For each place, the number of ops before it that take memory of the forward pass.
    fed: Vec<usize>,
    /// For each function, the place of the op that it differentiates, where both have a sequence number.
    places: Vec<Option<usize>>,
}

impl<'s> Forward<'s> {
    pub fn new(step: &'s StepIr) -> Forward<'s> {
        let Passes { forward: roots, backward: functions, .. } = Passes::find(step);
        let mut forward = Forward {
            step,
            roots,
            functions,
            made: FxHashMap::default(),
            taken_last: FxHashMap::default(),
            saved: FxHashSet::default(),
            saved_at: Vec::new(),
            fed: Vec::new(),
            places: Vec::new(),
        };
        forward.memory();
        forward.number();
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
        self.saved_at = self.saved.iter().map(|storage| self.made[storage].0).collect();
        self.saved_at.sort_unstable();
        let mut fed = 0;
        self.fed = vec![0];
        for &root in &self.roots {
            fed += usize::from(self.taken(root).any(|storage| self.made.contains_key(&storage)));
            self.fed.push(fed);
        }
    }

    fn number(&mut self) {
        let step = self.step;
        let mut numbers: FxHashMap<i64, usize> = FxHashMap::default();
        for (at, &root) in self.roots.iter().enumerate() {
            // A function differentiates the last op with its sequence number.
            numbers
                .extend(step.subtree(root).into_iter().filter_map(|op| Some((step.ops[op].sequence?, at))));
        }
        let number =
            |&function: &OpId| step.subtree(function).into_iter().find_map(|op| step.ops[op].sequence);
        self.places =
            self.functions.iter().map(|function| numbers.get(&number(function)?).copied()).collect();
    }

    /// Memory of a stretch that the functions of its ops save, with the place of the op that writes it. Where functions have no sequence numbers,
    /// memory that any function takes.
    pub fn saved_of(&self, places: &Range<usize>) -> FxHashMap<StorageId, usize> {
        let known = self.places.iter().any(Option::is_some);
        let mut saved = FxHashMap::default();
        for (&function, place) in self.functions.iter().zip(&self.places) {
            if known && !place.is_some_and(|place| places.contains(&place)) {
                continue;
            }
            for storage in self.taken(function) {
                if let Some(&(made, _)) = self.made.get(&storage).filter(|(made, _)| places.contains(made)) {
                    saved.insert(storage, made);
                }
            }
        }
        saved
    }

    /// Whether a stretch of the forward pass takes memory of an earlier one that the backward pass also takes.
    pub fn is_fed(&self, first: &Range<usize>, second: &Range<usize>) -> bool {
        let saved = self.saved_at.get(self.saved_at.partition_point(|&at| at < first.start));
        if self.fed[second.start] == self.fed[second.end] || saved.is_none_or(|at| !first.contains(at)) {
            return false;
        }
        let of_first = |storage| self.made.get(&storage).is_some_and(|(at, _)| first.contains(at));
        self.roots[second.clone()].iter().flat_map(|&root| self.taken(root)).any(of_first)
    }

    /// Memory taken by an op and by the ops inside it.
    pub fn taken(&self, op: OpId) -> impl Iterator<Item = StorageId> + use<'s> {
        let step = self.step;
        let takes = calls(step, op).flat_map(|call| call.takes().collect::<Vec<TensorId>>());
        takes.filter_map(|tensor| step.tensors[tensor].storage)
    }
}
