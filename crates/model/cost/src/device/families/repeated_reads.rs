//! Kernels whose blocks read rows several times: PyTorch's softmax along long rows up to version 2.6, and its layer norm.
//!
//! Rows that all blocks hold at once either stay in the second-level cache between two readings or come from memory again. In addition to
//! memory, each element costs cycles of a multiprocessor. `benches/rows_elsewhere.py` fits both on GPUs of five architectures.

use steptime_aten::Dtype;
use steptime_aten::kernel::{Norm, Softmax};

use crate::demand::Multiprocessor;
use crate::device::spec::DeviceSpec;

use super::memory::{Traffic, has_two_caches};

/// The work of a kernel with one row per block.
struct Row {
    /// Number of rows.
    rows: f64,
    /// Bytes per row.
    bytes: f64,
    /// Cycles per row of a multiprocessor of compute capability 7.0.
    cycles: f64,
    /// Number of readings after the first.
    again: f64,
    /// Threads per block.
    threads: u32,
    /// Share of the effective cache that holds rows until they are read again.
    held: f64,
}

/// Time of a softmax forward that reads each row for its maximum, its sum and its result, µs.
pub(super) fn softmax_us(
    softmax: &Softmax,
    dtype: Dtype,
    traffic: &Traffic,
    spec: &DeviceSpec,
) -> Option<f64> {
    let constants = &spec.constants.rows;
    let vector = 16 / dtype.size().clamp(1, 16);
    let threads = softmax_threads(softmax.length, vector);
    let whole = in_vectors(softmax.length, threads, vector);
    let rest = softmax.length as f64 - whole;
    let held = if has_two_caches(spec) { constants.split_cache } else { constants.whole_cache };
    let row = Row {
        rows: softmax.rows as f64,
        bytes: softmax.length as f64 * dtype.size() as f64,
        cycles: constants.softmax_block_cycles
            + constants.softmax_cycles * whole
            + constants.softmax_rest_cycles * rest,
        again: 2.0,
        threads: threads as u32,
        held,
    };
    is_known(spec).then(|| row.us(traffic, spec))
}

/// Time of a layer norm forward that reads each row for its mean and for its result, µs.
pub(super) fn layer_norm_us(norm: &Norm, dtype: Dtype, traffic: &Traffic, spec: &DeviceSpec) -> Option<f64> {
    let constants = &spec.constants.rows;
    let row = Row {
        rows: norm.rows as f64,
        bytes: norm.length as f64 * dtype.size() as f64,
        cycles: constants.norm_block_cycles + constants.norm_cycles * norm.length as f64,
        again: 1.0,
        threads: 128,
        held: constants.norm_cache,
    };
    is_known(spec).then(|| row.us(traffic, spec))
}

/// Threads per block in PyTorch's code: the largest power of two up to half the number of vectors, 512 at most.
fn softmax_threads(length: u64, vector: u64) -> u64 {
    let half = (length / vector).min(1024) / 2;
    half.max(32).next_power_of_two()
}

/// Elements of a row that are read in vectors, as a mean over rows: whole rounds of all threads. If a row begins between two vectors, a
/// round reads the elements before the first one by one, as another does those after the last.
fn in_vectors(length: u64, threads: u64, vector: u64) -> f64 {
    let of_row = |row: u64| {
        let late = row * (length % vector) % vector;
        let left = if late > 0 { (length + late).saturating_sub(threads) } else { length };
        left - left % (threads * vector)
    };
    (0..vector).map(of_row).sum::<u64>() as f64 / vector as f64
}

/// Whether the formula was observed to hold on GPUs of that maker: AMD's run other code.
fn is_known(spec: &DeviceSpec) -> bool {
    !spec.architecture.starts_with("CDNA")
}

impl Row {
    fn us(&self, traffic: &Traffic, spec: &DeviceSpec) -> f64 {
        let constants = &spec.constants.rows;
        let processors = f64::from(spec.multiprocessors);
        let processor = Multiprocessor::from_capability(spec.compute_capability);
        let blocks = f64::from(processor.blocks_of(self.threads));
        let room = self.held * spec.l2.effective_bytes as f64;
        let missed = 1.0 - 1.0 / (1.0 + (processors * blocks * self.bytes / room).powi(4));
        let memory = spec.dram_us(traffic.dram() + self.again * missed * traffic.read);
        let turns = (self.rows / (processors * blocks)).ceil().max(1.0) * blocks;
        let [major, minor] = spec.compute_capability.map(f64::from);
        let slower =
            constants.per_generation.powf(7.0 - major - 0.1 * minor) * 64.0 / f64::from(processor.lanes);
        let cycles = turns * self.cycles * slower / spec.clock_mhz;
        let longer = memory.max(cycles);
        if longer <= 0.0 {
            return spec.launch.floor_us;
        }
        let power = constants.sharpness;
        let both = (memory / longer).powf(power) + (cycles / longer).powf(power);
        spec.launch.floor_us + longer * both.powf(1.0 / power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_threads_that_torch_gives_them() {
        // Lengths at which blocks grow, from NeuSight's table.
        let threads = |length| softmax_threads(length, 4);
        assert_eq!(
            [1025, 1031, 1033, 2053, 2065, 4094, 16_384].map(threads),
            [128, 128, 256, 256, 512, 512, 512]
        );
    }

    #[test]
    fn rows_between_vectors_are_read_singly_at_both_ends() {
        assert_eq!(in_vectors(1280, 256, 4), 1024.0);
        assert_eq!(in_vectors(4096, 512, 4), 4096.0);
        // Every other row begins between two vectors, and loses a round of 128 elements.
        assert_eq!(in_vectors(1026, 128, 4), (1024.0 + 512.0) / 2.0);
    }
}
