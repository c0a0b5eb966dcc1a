//! Traffic of kernels: the bytes from device memory, and the time to move them.

use steptime_aten::{KernelCall, Role, Slot};

use crate::device::context::Context;
use crate::device::spec::DeviceSpec;

use super::times::overlap;

/// Latency from a processor to the second-level cache and back, µs. Published microbenchmarks of Volta to Hopper find 200
/// to 280 cycles (Jia et al. 2018, arXiv 1804.06826; Luo et al. 2024, arXiv 2402.13499).
pub(super) const L2_LATENCY_US: f64 = 0.16;

/// Latency from a processor to device memory and back, µs (same sources: 400 to 800 cycles).
pub(super) const DRAM_LATENCY_US: f64 = 0.45;

/// Bytes per cycle of one multiprocessor: the width of its path to the second-level cache (same sources).
pub(super) const SM_BYTES_PER_CYCLE: f64 = 64.0;

/// Smallest unit of transfer, bytes.
pub(super) const SECTOR: f64 = 32.0;

/// Traffic of a kernel.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::device) struct Traffic {
    /// Bytes read by the kernel.
    pub read: f64,
    /// Bytes written by the kernel.
    pub written: f64,
    /// Bytes read from device memory.
    pub dram_read: f64,
    /// Bytes written to device memory while it runs.
    pub dram_written: f64,
    /// Share of the bytes read that was in the cache.
    pub resident: f64,
}

impl Traffic {
    /// Traffic of a kernel that touches each byte of its operands once.
    pub fn from_call(call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Traffic {
        let (mut read, mut written, mut found) = (0.0, 0.0, 0.0);
        for (at, operand) in call.operands.iter().enumerate() {
            let bytes = operand.bytes as f64;
            if operand.role != Role::Write {
                read += bytes;
                found += if operand.slot == Slot::Scratch { bytes } else { bytes * ctx.residency(at, spec) };
            }
            if operand.role != Role::Read {
                written += bytes;
            }
        }
        Traffic::new(read, read - found, written, call.footprint() as f64, spec)
    }

    /// Traffic from bytes read, of which `missed` are not in the cache, and written; `footprint` is the number of bytes that pass the cache.
    pub fn new(read: f64, missed: f64, written: f64, footprint: f64, spec: &DeviceSpec) -> Traffic {
        let resident = if read > 0.0 { (1.0 - missed / read).clamp(0.0, 1.0) } else { 0.0 };
        // Written data stays in the cache until it must make room.
        let held = spec.l2.effective_bytes as f64 / footprint.max(1.0);
        let kept = held / (1.0 + held.powi(4)).sqrt().sqrt();
        Traffic { read, written, dram_read: missed.max(0.0), dram_written: written * (1.0 - kept), resident }
    }

    /// Bytes to and from device memory.
    pub fn dram(&self) -> f64 {
        self.dram_read + self.dram_written
    }

    /// Bytes through the second-level cache.
    pub fn l2(&self) -> f64 {
        self.read + self.written
    }

    /// Time to move them, without launch and latency, µs. `waste`: bytes moved between cache and processors
    /// per needed byte.
    pub fn move_us(&self, spec: &DeviceSpec, waste: f64) -> f64 {
        overlap(spec.dram_us(self.dram()), spec.l2_us(self.l2() * waste.max(1.0)))
    }

    /// Time of one step of a loop whose next step waits for its loads, µs.
    pub fn step_us(&self, spec: &DeviceSpec) -> f64 {
        let memory = &spec.constants.memory;
        memory.step_us + memory.dram_step_us * (1.0 - self.resident)
    }

    /// Time until the first bytes arrive, µs: the wait of small kernels.
    pub fn latency_us(&self) -> f64 {
        if self.read <= 0.0 { 0.0 } else { L2_LATENCY_US + DRAM_LATENCY_US * (1.0 - self.resident) }
    }
}

/// Rate of one multiprocessor, bytes per µs.
pub(super) fn sm_rate(spec: &DeviceSpec) -> f64 {
    SM_BYTES_PER_CYCLE * spec.clock_mhz
}

/// Whether the second-level cache has two halves, each of which keeps copies of the other's data: A100, H100 and B200.
pub(super) fn has_two_caches(spec: &DeviceSpec) -> bool {
    matches!(spec.compute_capability, [8, 0] | [9 | 10, _])
}

/// Bytes moved per needed byte if only `run` bytes are contiguous.
pub(super) fn sector_waste(run: f64) -> f64 {
    let run = run.max(1.0);
    ((run / SECTOR).ceil() * SECTOR / run).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::families::fixture::h200;

    #[test]
    fn small_outputs_stay_in_the_cache() {
        let spec = h200();
        let small = Traffic::new(0.0, 0.0, 1e6, 1e6, &spec);
        let large = Traffic::new(0.0, 0.0, 1e9, 1e9, &spec);
        assert!(small.dram_written < 1e4);
        assert!(large.dram_written > 0.9e9);
    }

    #[test]
    fn short_runs_waste_sectors() {
        assert_eq!(sector_waste(4.0), 8.0);
        assert_eq!(sector_waste(64.0), 1.0);
        assert!(sector_waste(36.0) > 1.7);
    }
}
