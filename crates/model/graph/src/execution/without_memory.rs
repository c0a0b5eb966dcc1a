//! Detection of tensors without memory: those on the `meta` device and fake ones.

use rustc_hash::FxHashMap;
use steptime_trace::ExecutionTrace;

/// Minimum number of tensors for a decision.
const FEWEST: usize = 4;

/// Whether most tensors are on the `meta` device. An optimizer's step counts are on the CPU even then.
fn mostly_on_meta(trace: &ExecutionTrace) -> bool {
    let Some(meta) = trace.names.find("meta") else { return false };
    let tensors = trace.values.tensors();
    2 * tensors.iter().filter(|tensor| tensor.device == meta).count() > tensors.len()
}

/// Whether the storage ids of a trace carry no information. Tensors without memory all have the same storage id: nearly all tensors of the
/// step have it, or most of them, of element types that one storage does not mix.
pub(super) fn is_fake(trace: &ExecutionTrace) -> bool {
    if mostly_on_meta(trace) {
        return true;
    }
    let mut storage_of = FxHashMap::default();
    // Scalars are in host memory even then.
    let named = trace.values.tensors().iter().filter(|tensor| tensor.storage_id != 0 && tensor.numel > 1);
    for tensor in named {
        storage_of.entry(tensor.tensor_id).or_insert((tensor.storage_id, tensor.itemsize));
    }
    let mut count: FxHashMap<u64, usize> = FxHashMap::default();
    for (storage, _) in storage_of.values() {
        *count.entry(*storage).or_default() += 1;
    }
    let Some((&common, &most)) = count.iter().max_by_key(|&(&storage, &count)| (count, storage)) else {
        return false;
    };
    let mut sizes = storage_of.values().filter(|(storage, _)| *storage == common).map(|(_, size)| size);
    let first = sizes.next();
    let mixed = sizes.any(|size| Some(size) != first);
    let all = storage_of.len();
    all >= FEWEST && (10 * most > 9 * all || (2 * most > all && mixed))
}
