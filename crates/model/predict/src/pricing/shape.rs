//! Usual launch shapes, for kernels whose launch shape was not recorded.

use steptime_aten::kernel::{Kernel, KernelCall, Precision};
use steptime_cost::device::DeviceSpec;
use steptime_graph::CollectiveKind;
use steptime_trace::LaunchShape;

/// Launch shape of a 32-bit product on a large GPU, and of one on tensor cores: threads per block, registers, shared
/// memory. Of the products of 18 measured pairs (`benches/overlap.py`), all but five have as many blocks as the GPU has
/// multiprocessors, or up to a quarter fewer.
const PRODUCT: [u32; 3] = [256, 202, 49_152];
const TENSOR_CORES: [u32; 3] = [384, 168, 213_000];
/// Launch shape of any other kernel, and the bytes per block.
const OTHER: [u32; 3] = [128, 32, 0];
const BYTES_OF_A_BLOCK: u64 = 4096;
/// Elements per block of a product.
const TILE: u64 = 128 * 64;

/// Usual launch shape of a kernel, by its family.
pub(crate) fn usual(call: &KernelCall, spec: &DeviceSpec) -> LaunchShape {
    let filled = |elements: u64| elements.div_ceil(TILE).max(u64::from(spec.multiprocessors));
    let written = call.bytes_written();
    let element = call.dtype.size().max(1);
    let (blocks, [threads, registers, shared_memory]) = match &call.kernel {
        Kernel::Gemm(gemm) => (filled(written / element), product(gemm.precision)),
        Kernel::Conv(conv) => (filled(written / element), product(conv.precision)),
        Kernel::Attention(_) | Kernel::Rnn(_) => (filled(written / element), TENSOR_CORES),
        _ => (call.footprint().div_ceil(BYTES_OF_A_BLOCK).max(1), OTHER),
    };
    let grid = [u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1];
    LaunchShape { grid, block: [threads, 1, 1], registers, shared_memory }
}

fn product(precision: Precision) -> [u32; 3] {
    if matches!(precision, Precision::F32 | Precision::F64) { PRODUCT } else { TENSOR_CORES }
}

/// Launch shape with one block on each multiprocessor that occupies all of it.
pub(crate) fn whole(spec: &DeviceSpec) -> LaunchShape {
    let [threads, registers, shared_memory] = TENSOR_CORES;
    LaunchShape { grid: [spec.multiprocessors, 1, 1], block: [threads, 1, 1], registers, shared_memory }
}

/// Launch shape of a collective's kernel: one block for each channel.
pub(super) fn channels(kind: CollectiveKind, spec: &DeviceSpec) -> LaunchShape {
    use CollectiveKind as K;
    let of = &spec.constants.collectives;
    let blocks = match kind {
        K::AllToAll | K::SendReceive | K::Gather | K::Scatter => of.exchange_blocks,
        K::Broadcast | K::Barrier => 1.0,
        _ => of.blocks,
    };
    let [blocks, threads, registers, shared_memory] =
        [blocks, of.threads, of.registers, of.shared_bytes].map(|number| number as u32);
    LaunchShape { grid: [blocks, 1, 1], block: [threads, 1, 1], registers, shared_memory }
}
