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
