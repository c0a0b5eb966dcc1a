//! Memory that the op of a node uses.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Arg;
use steptime_graph::execution::StorageId;
use steptime_graph::names::PROCESS_GROUP;

use crate::ids::{OpId, TensorId};
use crate::node_order::{NodeOrder, UsedBytes};
use crate::step::StepIr;
use crate::tensors::Tensor;

/// Identity of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Memory {
    /// A storage, and the bytes of its elements: views of a cast tensor keep the storage from before the cast.
    Storage(StorageId, u64),
    Tensor(TensorId),
}

/// A use of a tensor.
#[derive(Debug, Clone, Copy)]
struct Use {
    memory: Memory,
    own: UsedBytes,
    placed: Option<UsedBytes>,
    writes: bool,
}

impl Use {
    fn shares_data(&self, other: &Use) -> bool {
        self.memory == other.memory && self.own.overlaps(&other.own)
    }
}

/// Uses of memory by a node; `None` where the operands of its op are unknown.
#[derive(Debug, Clone)]
pub(super) struct Uses(Option<Vec<Use>>);

impl Uses {
    /// The uses of several nodes together.
    pub fn joined(all: impl Iterator<Item = Uses>) -> Uses {
        let all: Option<Vec<Vec<Use>>> = all.map(|uses| uses.0).collect();
        Uses(all.map(|all| all.concat()))
    }

    /// Whether two nodes have to run one after the other.
    pub fn conflicts(&self, other: &Uses) -> bool {
        self.any(other, |one, other| {
            let placed = || one.placed.zip(other.placed).is_some_and(|(one, other)| one.overlaps(&other));
            one.shares_data(other) || placed()
        })
    }

    /// Whether one of two nodes uses the results of the other, wherever tensors are placed.
    pub fn conflicts_by_data(&self, other: &Uses) -> bool {
        self.any(other, Use::shares_data)
    }

    /// Whether any two uses, one of them writing, share bytes.
    fn any(&self, other: &Uses, share: impl Fn(&Use, &Use) -> bool) -> bool {
        let (Some(own), Some(other)) = (&self.0, &other.0) else { return true };
        own.iter().any(|one| other.iter().any(|other| (one.writes || other.writes) && share(one, other)))
    }
}

/// The memory of the tensors of a step.
pub(super) struct Memories<'s> {
    step: &'s StepIr,
    order: &'s NodeOrder,
    /// For a tensor without a storage of its own: the tensor that it is a view of.
    viewed: FxHashMap<TensorId, TensorId>,
}

impl<'s> Memories<'s> {
    /// The memory of all tensors; `launches` tells whether an op, or one inside it, launches work.
    pub fn new(step: &'s StepIr, order: &'s NodeOrder, launches: &FxHashSet<OpId>) -> Memories<'s> {
        let mut viewed = FxHashMap::default();
        for op in step.running().into_iter().filter(|op| !launches.contains(op)) {
            let Some(call) = &step.ops[op].call else { continue };
            let Some(from) = call.takes().next() else { continue };
            for to in call.gives().filter(|&to| to != from && step.tensors[to].storage.is_none()) {
                viewed.entry(to).or_insert(from);
            }
        }
        Memories { step, order, viewed }
    }

    /// The uses of the op that launches a node, or of the innermost op around it with known operands.
    pub fn uses(&self, op: Option<OpId>) -> Uses {
        if let Some(uses) = op.and_then(|op| self.exchange(op)) {
            return uses;
        }
        let call = op.and_then(|op| self.step.around(op).find_map(|op| self.step.ops[op].arguments()));
        let Some(call) = call else { return Uses(None) };
        let given: FxHashSet<TensorId> = call.gives().collect();
        // An op without results changes its operands.
        let taken = call.takes().filter(|tensor| !given.contains(tensor));
        let reads = taken.map(|tensor| self.used(tensor, given.is_empty()));
        Uses(Some(reads.chain(given.iter().map(|&tensor| self.used(tensor, true))).collect()))
    }

    /// The uses of an exchange with other ranks, by the op that requests it: it writes its first argument. `None` for other ops.
    fn exchange(&self, op: OpId) -> Option<Uses> {
        let requests = |op: &OpId| self.step.ops[*op].name.starts_with(PROCESS_GROUP);
        let call = self.step.ops[self.step.around(op).find(requests)?].arguments()?;
        let (first, others) = call.inputs.split_first()?;
        let written = first.tensors().iter().copied().chain(call.gives());
        let read = others.iter().flat_map(Arg::tensors);
        let uses = written.map(|tensor| self.used(tensor, true));
        Some(Uses(Some(uses.chain(read.map(|&tensor| self.used(tensor, false))).collect())))
    }

    fn used(&self, tensor: TensorId, writes: bool) -> Use {
        let mut root = tensor;
        // A view of a view; at most as many as there are.
        for _ in 0..self.viewed.len() {
            let Some(&from) = self.viewed.get(&root) else { break };
            root = from;
        }
        let row = &self.step.tensors[root];
        let memory = memory(root, row);
        let is_whole = root != tensor || matches!(memory, Memory::Tensor(_));
        let whole = UsedBytes { region: 0, start: 0, end: u64::MAX, columns: None };
        let own = if is_whole { whole } else { UsedBytes::within_storage(&row.value) };
        Use { memory, own, placed: self.order.places.get(&tensor).copied(), writes }
    }
}

fn memory(tensor: TensorId, row: &Tensor) -> Memory {
    row.storage.map_or(Memory::Tensor(tensor), |storage| Memory::Storage(storage, row.value.dtype.size()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The uses of a node that reads one tensor and writes another.
    pub fn uses(reads: usize, writes: usize) -> Uses {
        let own = UsedBytes { region: 0, start: 0, end: u64::MAX, columns: None };
        let one = |tensor, writes| Use {
            memory: Memory::Tensor(TensorId::from(tensor)),
            own,
            placed: None,
            writes,
        };
        Uses(Some(vec![one(reads, false), one(writes, true)]))
    }

    #[test]
    fn places_count_apart_from_data() {
        let placed = |tensor| {
            let Uses(Some(mut all)) = uses(9, tensor) else { panic!("known uses") };
            all[1].placed = Some(UsedBytes { region: 1, start: 0, end: 8, columns: None });
            Uses(Some(all))
        };
        assert!(placed(0).conflicts(&placed(1)) && !placed(0).conflicts_by_data(&placed(1)));
        assert!(uses(0, 1).conflicts_by_data(&uses(1, 2)) && !uses(0, 1).conflicts(&uses(0, 2)));
        let both = Uses::joined([uses(0, 1), uses(2, 3)].into_iter());
        assert!(both.conflicts(&uses(3, 4)) && !both.conflicts(&uses(4, 5)));
        assert!(
            Uses::joined([uses(0, 1), Uses(None)].into_iter()).conflicts(&uses(4, 5)),
            "unknown operands"
        );
    }
}
