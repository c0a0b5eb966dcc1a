//! Bytes that an op uses.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::execution::StorageId;

use super::NodeOrder;
use crate::ids::{OpId, TensorId};
use crate::step::StepIr;
use crate::tensors::Tensor;

/// A stretch of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedBytes {
    /// Number of its region: bytes of different regions are different.
    pub region: u32,
    /// First byte.
    pub start: u64,
    /// End of the last byte.
    pub end: u64,
    /// Distance of rows, and first and last byte of each row within it, where rows have gaps.
    pub columns: Option<[u64; 3]>,
}

impl UsedBytes {
    /// Whether two stretches share a byte.
    #[must_use]
    pub fn overlaps(&self, other: &UsedBytes) -> bool {
        let apart = match (self.columns, other.columns) {
            (Some([pitch, first, last]), Some([same, begin, end])) => {
                pitch == same && (last <= begin || end <= first)
            }
            _ => false,
        };
        self.region == other.region && self.start < other.end && other.start < self.end && !apart
    }

    /// The shortest stretch with both.
    #[must_use]
    pub fn merged(&self, other: &UsedBytes) -> UsedBytes {
        let columns = self.columns.filter(|own| other.columns.is_some_and(|columns| columns == *own));
        UsedBytes { start: self.start.min(other.start), end: self.end.max(other.end), columns, ..*self }
    }

    /// The stretch of a tensor within its storage.
    fn within_storage(tensor: &steptime_aten::Tensor) -> UsedBytes {
        let all = UsedBytes { region: 0, start: 0, end: u64::MAX, columns: None };
        let (shape, strides) = (&tensor.shape[..], &tensor.strides[..]);
        if tensor.is_sparse() || shape.len() != strides.len() || shape.iter().chain(strides).any(|&n| n < 0) {
            return all;
        }
        let size = tensor.dtype.size();
        let last: i64 = shape.iter().zip(strides).map(|(&n, &step)| (n - 1).max(0) * step).sum();
        let start = tensor.offset.saturating_mul(size);
        let end = start.saturating_add((last as u64 + 1).saturating_mul(size));
        let columns = columns(shape, strides).map(|[pitch, width]| {
            let (pitch, width) = (pitch * size, width * size);
            [pitch, start % pitch, start % pitch + width]
        });
        UsedBytes { region: 0, start, end, columns: columns.filter(|[pitch, _, last]| last <= pitch) }
    }
}

/// Distance of the rows of a layout and their length, in elements; `None` where there is no gap between rows.
fn columns(shape: &[i64], strides: &[i64]) -> Option<[u64; 2]> {
    let (&[_, ref inner @ ..], &[pitch, ref steps @ ..]) = (shape, strides) else { return None };
    let mut width = 1;
    for (&size, &step) in inner.iter().zip(steps).rev() {
        if step != width {
            return None;
        }
        width *= size;
    }
    (width < pitch).then_some([pitch.cast_unsigned(), width.cast_unsigned()])
}

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

/// Uses of memory by a node; `None` where the operands of its op are unknown.
#[derive(Debug, Clone)]
pub(super) struct Uses(Option<Vec<Use>>);

impl Uses {
    /// Whether two nodes have to run one after the other.
    pub fn conflicts(&self, other: &Uses) -> bool {
        let (Some(own), Some(other)) = (&self.0, &other.0) else { return true };
        own.iter().any(|one| {
            other.iter().any(|other| {
                let placed = || one.placed.zip(other.placed).is_some_and(|(one, other)| one.overlaps(&other));
                (one.writes || other.writes)
                    && (one.memory == other.memory && one.own.overlaps(&other.own) || placed())
            })
        })
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
        let call = op.and_then(|op| self.step.around(op).find_map(|op| self.step.ops[op].arguments()));
        let Some(call) = call else { return Uses(None) };
        let given: FxHashSet<TensorId> = call.gives().collect();
        // An op without results changes its operands.
        let taken = call.takes().filter(|tensor| !given.contains(tensor));
        let reads = taken.map(|tensor| self.used(tensor, given.is_empty()));
        Uses(Some(reads.chain(given.iter().map(|&tensor| self.used(tensor, true))).collect()))
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
mod tests {
    use super::*;

    fn bytes(start: u64, end: u64, columns: Option<[u64; 3]>) -> UsedBytes {
        UsedBytes { region: 0, start, end, columns }
    }

    #[test]
    fn columns_apart_share_no_byte() {
        let left = bytes(0, 100, Some([20, 0, 8]));
        assert!(!left.overlaps(&bytes(8, 108, Some([20, 8, 20]))));
        assert!(left.overlaps(&bytes(4, 104, Some([20, 4, 12]))));
        assert!(left.overlaps(&bytes(0, 100, Some([10, 8, 10]))), "another distance of rows");
        assert!(left.overlaps(&bytes(90, 200, None)) && !left.overlaps(&bytes(100, 200, None)));
        assert!(!left.overlaps(&UsedBytes { region: 1, ..left }));
        assert_eq!(left.merged(&bytes(90, 200, None)), bytes(0, 200, None));
    }

    #[test]
    fn rows_with_gaps_have_columns() {
        let tensor = steptime_aten::Tensor::strided(&[8, 3], &[5, 1], steptime_aten::Dtype::F32);
        assert_eq!(UsedBytes::within_storage(&tensor), bytes(0, 4 * 38, Some([20, 0, 12])));
        let whole = steptime_aten::Tensor::contiguous(&[8, 3], steptime_aten::Dtype::F32);
        assert_eq!(UsedBytes::within_storage(&whole), bytes(0, 96, None));
    }
}
