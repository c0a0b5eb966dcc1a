//! Kernels with one row per block (or per warp): softmax and the norms.

use steptime_aten::KernelCall;

use crate::device::spec::DeviceSpec;

use super::memory::{DRAM_LATENCY_US, L2_LATENCY_US, Traffic, sm_rate};
use super::times::{instructions_us, overlap};

/// Work of such a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    /// Number of rows.
    pub rows: f64,
    /// Elements per row.
    pub length: f64,
    /// Number of readings of a row after the first.
    pub again: f64,
    /// Instructions per element.
    pub instructions: f64,
    /// Rows per block.
    pub together: f64,
    /// Bytes moved per needed byte.
    pub waste: f64,
}

/// Number of elements of a row up to which a warp keeps it in registers.
pub(super) const WARP_ROW: f64 = 1024.0;

/// Time of such a kernel, µs.
pub(super) fn rows_us(work: &Rows, call: &KernelCall, traffic: &Traffic, spec: &DeviceSpec) -> f64 {
    let processors = f64::from(spec.multiprocessors);
    let rows = work.rows.max(1.0);
    // Bytes of one row, moved once and then again from the nearest cache.
    let row_bytes = traffic.l2() / rows * (1.0 + 0.5 * work.again) * work.waste;
    let together = work.together;
    let blocks = (rows / together).ceil();
    let turns = (blocks / processors).ceil().max(1.0);
    let fed = turns * together.min(rows) * row_bytes / sm_rate(spec);
    let threads = (work.length / 4.0).clamp(128.0, 1024.0);
    let idle = (2048.0 / threads).min(blocks / processors).max(1.0) * threads / 2048.0;
    let compute = instructions_us(rows * work.length * work.instructions, spec) / idle.clamp(0.05, 1.0);
    let again = 1.0 + 0.3 * work.again;
    // Each block takes some round trips, however short its rows.
    let held = (2048.0 / threads).clamp(1.0, 16.0);
    let lives = blocks / (processors * held) * spec.constants.memory.block_life_us * (1.0 + 0.2 * work.again);
    let busy = overlap(overlap(overlap(compute, fed), lives), traffic.move_us(spec, work.waste * again));
    // Sums of a block: one round trip for each reading of the row.
    let sums = (1.0 + work.again) * if work.length > WARP_ROW { DRAM_LATENCY_US } else { L2_LATENCY_US };
    spec.launch.floor_us * f64::from(call.launches.max(1)) + traffic.latency_us() + busy + sums
}
