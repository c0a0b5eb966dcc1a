//! Usual launch shapes, for kernels whose launch shape was not recorded.

use crate::uncertainty::uncertainty;
use steptime_aten::kernel::{Kernel, KernelCall, Precision};
use steptime_cost::device::DeviceSpec;
use steptime_graph::CollectiveKind;
use steptime_trace::LaunchShape;

/// Usual launch shape of a kernel, by its family.
pub(crate) fn usual(call: &KernelCall, spec: &DeviceSpec) -> LaunchShape {
    let shapes = &uncertainty().launch_shapes;
    let filled =
        |elements: u64| elements.div_ceil(shapes.product_elements).max(u64::from(spec.multiprocessors));
    let written = call.bytes_written();
    let element = call.dtype.size().max(1);
    let (blocks, [threads, registers, shared_memory]) = match &call.kernel {
        Kernel::Gemm(gemm) => (filled(written / element), product(gemm.precision)),
        Kernel::Conv(conv) => (filled(written / element), product(conv.precision)),
        Kernel::Attention(_) | Kernel::Rnn(_) => (filled(written / element), shapes.tensor_cores),
        _ => (call.footprint().div_ceil(shapes.other_bytes).max(1), shapes.other),
    };
    let grid = [u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1];
    LaunchShape { grid, block: [threads, 1, 1], registers, shared_memory }
}

fn product(precision: Precision) -> [u32; 3] {
    let shapes = &uncertainty().launch_shapes;
    if matches!(precision, Precision::F32 | Precision::F64) { shapes.product } else { shapes.tensor_cores }
}

/// Launch shape with one block on each multiprocessor that occupies all of it.
pub(crate) fn whole(spec: &DeviceSpec) -> LaunchShape {
    let [threads, registers, shared_memory] = uncertainty().launch_shapes.tensor_cores;
    LaunchShape { grid: [spec.multiprocessors, 1, 1], block: [threads, 1, 1], registers, shared_memory }
}

/// Launch shape of a collective's kernel: one block for each channel.
pub(crate) fn channels(kind: CollectiveKind, spec: &DeviceSpec) -> LaunchShape {
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
