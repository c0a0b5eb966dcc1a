//! Pieces of device memory: storages, and tensors whose storage is unknown.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use steptime_aten::{Device, Tensor as Value};
use steptime_graph::TiVec;
use steptime_graph::execution::StorageId;

use super::sparse::Sparse;
use crate::ids::{OpId, TensorId};
use crate::step::StepIr;
use crate::tensors::{LifetimeEnd, Tensor};

/// Allocation granularity of PyTorch's allocator, bytes.
const GRAIN: u64 = 512;
/// A block of at least this size has its own segment, whose size is a multiple of the second number. The rest of the segment belongs to the block, if
/// it is at most the third number.
const LARGE: u64 = 10 << 20;
const SEGMENT: u64 = 2 << 20;
const LEFT: u64 = 1 << 20;

/// The pieces of memory of each tensor, and their sizes.
#[derive(Debug)]
pub(super) struct Pieces {
    /// For each tensor, the indices of its pieces in `bytes`: one, or none off the device; for a sparse tensor those of its parts.
    of: TiVec<TensorId, SmallVec<[usize; 1]>>,
    /// Bytes of each piece.
    pub bytes: Vec<u64>,
    /// Spare bytes of each piece's allocator block.
    pub spare: Vec<u64>,
    /// Whether each piece was made within the recorded step, possibly by an op that no longer runs.
    pub made: Vec<bool>,
    /// End of the lifetime of each piece.
    pub until: Vec<LifetimeEnd>,
}

impl Pieces {
    /// The pieces of a step; `ended` are its ops, those inside another before it.
    pub(super) fn find(step: &StepIr, ended: &[OpId]) -> Pieces {
        let sparse = Sparse::find(step, ended);
        let mut known: FxHashMap<StorageId, usize> = FxHashMap::default();
        let mut pieces = Pieces {
            of: TiVec::new(),
            bytes: Vec::new(),
            spare: Vec::new(),
            made: Vec::new(),
            until: Vec::new(),
        };
        for (at, row) in step.tensors.iter_enumerated() {
            let bytes = match sparse.values.get(&at) {
                Some(&values) => values,
                None if row.value.is_sparse() => 0,
                None => extent(&row.value),
            };
            let is_piece = row.value.device == Device::Cuda && (!row.value.is_sparse() || bytes > 0);
            let piece = is_piece.then(|| pieces.add(row, bytes, &mut known));
            pieces.of.push(piece.into_iter().collect());
        }
        for (&tensor, parts) in &sparse.parts {
            let parts: Vec<usize> = parts.iter().flat_map(|&part| pieces.of[part].clone()).collect();
            pieces.of[tensor].extend(parts);
        }
        pieces.bytes.iter_mut().for_each(|size| *size = size.div_ceil(GRAIN).saturating_mul(GRAIN));
        pieces.spare = pieces.bytes.iter().map(|&size| spare(size)).collect();
        pieces
    }

    /// The pieces of a tensor.
    pub(super) fn all(&self, tensor: TensorId) -> impl Iterator<Item = usize> {
        self.of[tensor].iter().copied()
    }

    fn add(&mut self, row: &Tensor, bytes: u64, known: &mut FxHashMap<StorageId, usize>) -> usize {
        let next = self.bytes.len();
        let piece = row.storage.map_or(next, |storage| *known.entry(storage).or_insert(next));
        if piece == next {
            self.bytes.push(0);
            self.made.push(false);
            self.until.push(LifetimeEnd::LastUse);
        }
        self.bytes[piece] = self.bytes[piece].max(bytes);
        self.made[piece] |= row.made;
        self.until[piece] = self.until[piece].max(row.until);
        piece
    }
}

/// Bytes of the allocator's block beyond the requested ones.
fn spare(size: u64) -> u64 {
    let left = size.div_ceil(SEGMENT).saturating_mul(SEGMENT).saturating_sub(size);
    if size >= LARGE && left <= LEFT { left } else { 0 }
}

/// End of a tensor within its storage, bytes.
fn extent(tensor: &Value) -> u64 {
    let whole = |size: i64| u64::try_from(size).unwrap_or(0);
    if tensor.shape.iter().any(|&size| size <= 0) {
        return 0;
    }
    let reaches = tensor.shape.iter().zip(&tensor.strides);
    let reaches = reaches.map(|(&size, &stride)| (whole(size) - 1).saturating_mul(whole(stride)));
    let span = reaches.fold(1, u64::saturating_add);
    tensor.offset.saturating_add(span).saturating_mul(tensor.dtype.size())
}

#[cfg(test)]
mod tests {
    use steptime_aten::Dtype;

    use super::*;

    fn row(shape: &[i64], strides: &[i64], storage: Option<u32>) -> Tensor {
        let value = Value::strided(shape, strides, Dtype::F32);
        Tensor {
            value,
            storage: storage.map(StorageId),
            recorded: None,
            made: false,
            until: LifetimeEnd::LastUse,
        }
    }

    #[test]
    fn views_share_a_piece_as_large_as_the_furthest_of_them_reaches() {
        let mut step = StepIr::default();
        step.tensors.push(row(&[1000], &[1], Some(7)));
        step.tensors.push(row(&[10, 100], &[0, 1], Some(7)));
        step.tensors.push(row(&[4], &[1], None));
        step.tensors.push(row(&[4], &[1], None));
        step.tensors.push(row(&[0, 9], &[9, 1], Some(8)));
        let pieces = Pieces::find(&step, &[]);
        let of: Vec<Vec<usize>> = step.tensors.keys().map(|tensor| pieces.all(tensor).collect()).collect();
        assert_eq!(of, [[0], [0], [1], [2], [3]]);
        assert_eq!(pieces.bytes, [4096, 512, 512, 0]);
    }

    #[test]
    fn a_large_block_takes_what_is_left_of_its_segment() {
        let mib = |count: u64| count << 20;
        assert_eq!([mib(9) + 512, mib(10), mib(11), mib(11) - 512].map(spare), [0, 0, mib(1), 0]);
    }

    #[test]
    fn sizes_beyond_all_memory_do_not_overflow() {
        let huge = row(&[i64::MAX, i64::MAX], &[i64::MAX, 1], None);
        assert!(extent(&huge.value) > 1 << 60);
        let mut step = StepIr::default();
        step.tensors.push(huge);
        assert!(Pieces::find(&step, &[]).bytes[0] > 1 << 60);
    }
}
