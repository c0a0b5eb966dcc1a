//! Numbers of tensors and storages. They follow addresses, each of which may serve several tensors in turn.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::execution::{self, ExecutionGraph, StorageId};

use super::super::Export;
use super::values::{Object, TensorRef, ValueText, Values};
use super::{OpEnds, unused_numbers};
use crate::ids::{OpId, TensorId};
use crate::step::StepIr;

/// The numbers of tensors and storages of a step.
pub(super) struct Identities {
    objects: FxHashMap<Object, u64>,
    storages: FxHashMap<Memory, u64>,
    known: RecordedStorages,
    /// The first unused number.
    free: u64,
}

/// A piece of memory: recorded, made by a rule, or of a tensor with unknown memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Memory {
    Recorded(StorageId),
    Made(StorageId),
    Of(TensorId),
}

/// The memory of recorded tensors. A rule numbers its own after these.
struct RecordedStorages(FxHashSet<StorageId>);

impl RecordedStorages {
    fn from_step(step: &StepIr) -> RecordedStorages {
        let recorded = step.tensors.iter().filter(|row| row.recorded.is_some());
        RecordedStorages(recorded.filter_map(|row| row.storage).collect())
    }

    fn memory(&self, step: &StepIr, tensor: TensorId) -> Memory {
        match step.tensors[tensor].storage {
            Some(storage) if self.0.contains(&storage) => Memory::Recorded(storage),
            Some(storage) => Memory::Made(storage),
            None => Memory::Of(tensor),
        }
    }
}

/// Owners of numbers, in the order of ops.
struct Lives<T> {
    owner: FxHashMap<u64, T>,
    /// Former owners.
    over: FxHashSet<T>,
    /// Tensors or storages that need new numbers, in order: former owners that are used again, and those without a number.
    new: Vec<T>,
    known: FxHashSet<T>,
}

impl<T: Copy + Eq + Hash> Lives<T> {
    fn new() -> Lives<T> {
        let (owner, over) = (FxHashMap::default(), FxHashSet::default());
        Lives { owner, over, new: Vec::new(), known: FxHashSet::default() }
    }

    fn see(&mut self, one: T, number: Option<u64>) {
        let Some(number) = number else { return self.renew(one) };
        let owner = self.owner.get(&number).copied();
        if owner == Some(one) {
            return;
        }
        if self.over.contains(&one) {
            return self.renew(one);
        }
        self.over.extend(owner);
        self.owner.insert(number, one);
    }

    fn renew(&mut self, one: T) {
        if self.known.insert(one) {
            self.new.push(one);
        }
    }
}

impl Identities {
    pub fn assign(
        export: &Export<'_>,
        values: &Values<'_>,
        begins: &[OpId],
        ends: &OpEnds<'_>,
    ) -> Identities {
        let (step, trace) = (export.step, export.trace);
        let raw = |object: Object| Some(trace?.tensors.get(object.recorded?).raw_id);
        let known = RecordedStorages::from_step(step);
        let memory = |tensor: TensorId| known.memory(step, tensor);
        let address = |memory: Memory| match memory {
            Memory::Recorded(storage) => Some(trace?.tensors.storage(storage).address),
            Memory::Made(_) | Memory::Of(_) => None,
        };
        let (mut objects, mut storages) = (Lives::new(), Lives::new());
        let mut seen: FxHashSet<Object> = FxHashSet::default();
        let mut see = |args: &[ValueText]| {
            for which in args.iter().flat_map(ValueText::tensors) {
                if let TensorRef::Step(object) = which {
                    let tensor = object.tensor;
                    seen.insert(object);
                    objects.see(object, raw(object));
                    let memory = memory(tensor);
                    // Tensors without elements, and sparse ones, have no memory: their number is irrelevant.
                    let empty = step.tensors[tensor].value.numel() == 0;
                    if address(memory).is_none_or(|address| address != 0 && !empty) {
                        storages.see(memory, address(memory));
                    }
                }
            }
        };
        for &begun in begins {
            see(&values.op(begun)[0]);
            ends.after(begun).for_each(|ended| see(&values.op(ended)[1]));
        }
        let wanted = objects.new.len() + storages.new.len() + step.threads.len() + begins.len();
        let mut free = first_free(trace, wanted as u64);
        let mut next = || {
            free += 1;
            free - 1
        };
        let new_objects: FxHashMap<Object, u64> = objects.new.iter().map(|&one| (one, next())).collect();
        let new_storages: FxHashMap<Memory, u64> = storages.new.iter().map(|&one| (one, next())).collect();
        let of_object = |&object: &Object| {
            let number = new_objects.get(&object).copied().or_else(|| raw(object));
            (object, number.unwrap_or(0))
        };
        let of_memory = |object: &Object| {
            let memory = memory(object.tensor);
            let number = new_storages.get(&memory).copied().or_else(|| address(memory));
            (memory, number.unwrap_or(0))
        };
        let (objects, storages) =
            (seen.iter().map(of_object).collect(), seen.iter().map(of_memory).collect());
        Identities { objects, storages, known, free }
    }

    /// The numbers of a tensor and of its storage.
    pub fn object(&self, export: &Export<'_>, object: Object) -> [u64; 2] {
        let memory = self.known.memory(export.step, object.tensor);
        let [own, storage] = [self.objects.get(&object), self.storages.get(&memory)];
        [own, storage].map(|number| number.copied().unwrap_or(0))
    }

    /// The numbers of a tensor that only the trace has.
    pub fn recorded(trace: &ExecutionGraph, tensor: execution::TensorId) -> [u64; 2] {
        let row = trace.tensors.get(tensor);
        [row.raw_id, trace.tensors.storage(row.storage).address]
    }

    /// The first number that no tensor, storage or node of the recording has.
    pub fn first_free(&self) -> u64 {
        self.free
    }
}

/// The first of `count` consecutive numbers that are unused in the trace. 1 is the root's.
fn first_free(trace: Option<&ExecutionGraph>, count: u64) -> u64 {
    let used = trace.into_iter().flat_map(|trace| {
        let tensors = trace.tensors.all().iter().map(|tensor| tensor.raw_id);
        let storages = trace.tensors.storages().iter().map(|storage| storage.address);
        tensors.chain(storages).chain(trace.nodes.id.iter().copied())
    });
    unused_numbers::first(used, 2, count)
}
