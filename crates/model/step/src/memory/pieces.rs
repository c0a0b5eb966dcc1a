//! Pieces of device memory: storages, and tensors whose storage is not known.

use rustc_hash::FxHashMap;
use steptime_aten::{Device, Tensor as Value};
use steptime_graph::TiVec;
use steptime_graph::execution::StorageId;

use crate::ids::TensorId;
use crate::step::Step;

/// PyTorch's allocator gives a multiple of this many bytes.
const GRAIN: u64 = 512;

/// Which piece of memory each tensor lies in, and how large each is.
#[derive(Debug)]
pub(super) struct Pieces {
    /// For each tensor the place of its piece in `bytes`; `None` off the device.
    pub of: TiVec<TensorId, Option<usize>>,
    /// Bytes of each piece.
    pub bytes: Vec<u64>,
}

impl Pieces {
    pub(super) fn of(step: &Step) -> Pieces {
        let mut known: FxHashMap<StorageId, usize> = FxHashMap::default();
        let mut bytes: Vec<u64> = Vec::new();
        let mut of = TiVec::with_capacity(step.tensors.len());
        for row in &step.tensors {
            if row.value.device != Device::Cuda {
                of.push(None);
                continue;
            }
            let next = bytes.len();
            let piece = row.storage.map_or(next, |storage| *known.entry(storage).or_insert(next));
            if piece == next {
                bytes.push(0);
            }
            bytes[piece] = bytes[piece].max(extent(&row.value));
            of.push(Some(piece));
        }
        bytes.iter_mut().for_each(|size| *size = size.div_ceil(GRAIN).saturating_mul(GRAIN));
        Pieces { of, bytes }
    }
}

/// How far into its storage a tensor reaches, bytes.
fn extent(tensor: &Value) -> u64 {
    let whole = |size: i64| u64::try_from(size).unwrap_or(0);
    if tensor.shape.iter().any(|&size| size <= 0) {
        return 0;
    }
    let span = if tensor.strides.len() == tensor.shape.len() {
        let reaches = tensor.shape.iter().zip(&tensor.strides);
        let reaches = reaches.map(|(&size, &stride)| (whole(size) - 1).saturating_mul(whole(stride)));
        reaches.fold(1, u64::saturating_add)
    } else {
        tensor.shape.iter().map(|&size| whole(size)).fold(1, u64::saturating_mul)
    };
    tensor.offset.saturating_add(span).saturating_mul(tensor.dtype.size())
}

#[cfg(test)]
mod tests {
    use steptime_aten::Dtype;

    use super::*;
    use crate::tensors::Tensor;

    fn row(shape: &[i64], strides: &[i64], storage: Option<u32>) -> Tensor {
        Tensor {
            value: Value::strided(shape, strides, Dtype::F32),
            storage: storage.map(StorageId),
            recorded: None,
        }
    }

    #[test]
    fn views_share_a_piece_as_large_as_the_furthest_of_them_reaches() {
        let mut step = Step::default();
        step.tensors.push(row(&[1000], &[1], Some(7)));
        step.tensors.push(row(&[10, 100], &[0, 1], Some(7)));
        step.tensors.push(row(&[4], &[1], None));
        step.tensors.push(row(&[4], &[1], None));
        step.tensors.push(row(&[0, 9], &[9, 1], Some(8)));
        let pieces = Pieces::of(&step);
        assert_eq!(pieces.of.raw, [Some(0), Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(pieces.bytes, [4096, 512, 512, 0]);
    }

    #[test]
    fn sizes_beyond_all_memory_do_not_overflow() {
        let huge = row(&[i64::MAX, i64::MAX], &[i64::MAX, 1], None);
        assert!(extent(&huge.value) > 1 << 60);
        let mut step = Step::default();
        step.tensors.push(huge);
        assert!(Pieces::of(&step).bytes[0] > 1 << 60);
    }
}
