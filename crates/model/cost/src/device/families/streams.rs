//! Memory rates of kernels that keep many bytes in flight, as steptime's do.

use crate::device::spec::DeviceSpec;

use super::memory::Traffic;

/// Time to move a kernel's bytes, µs: that of the slower of both memories, which hides the other.
pub(super) fn streams_us(traffic: &Traffic, spec: &DeviceSpec) -> f64 {
    let (read, written) = (traffic.dram_read, traffic.dram_written);
    let sum = (read + written).max(1.0);
    let streams = &spec.constants.streams;
    let turns = streams.turns * 4.0 * (read / sum) * (written / sum);
    (spec.dram_us(sum) / (1.0 - turns)).max(spec.l2_us(traffic.l2()) / streams.cache_gain)
}

/// Bytes of evict-first writes that reach device memory while a kernel of this footprint runs.
pub(super) fn written_through(written: f64, footprint: f64, spec: &DeviceSpec) -> f64 {
    let filled = footprint / spec.l2.effective_bytes as f64;
    written * (1.0 - 1.0 / (1.0 + filled.powi(4)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::families::fixture::h200;

    fn traffic(dram_read: f64, dram_written: f64, l2: f64) -> Traffic {
        Traffic { read: l2, written: 0.0, dram_read, dram_written, resident: 0.0 }
    }

    #[test]
    fn memory_loses_time_between_reads_and_writes() {
        let spec = h200();
        let [alone, both] = [(8e8, 0.0), (4e8, 4e8)].map(|(r, w)| streams_us(&traffic(r, w, 0.0), &spec));
        assert!((alone / spec.dram_us(8e8) - 1.0).abs() < 1e-9);
        assert!((both / alone - 1.0 / 0.92).abs() < 1e-6);
        assert!(streams_us(&traffic(1e6, 0.0, 8e8), &spec) < spec.l2_us(8e8));
    }

    #[test]
    fn large_outputs_leave_the_cache() {
        let spec = h200();
        assert!(written_through(1e6, 1e6, &spec) < 1e3);
        assert!(written_through(1e8, 2e8, &spec) > 0.99e8);
    }
}
