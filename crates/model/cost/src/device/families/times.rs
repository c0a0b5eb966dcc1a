//! Durations of work that fills the device in waves or overlaps with other work.

use crate::demand::Multiprocessor;
use crate::device::spec::DeviceSpec;

/// Time of `count` simple instructions on all multiprocessors, µs. A multiply-add counts as two operations
/// and is one instruction.
pub(super) fn instructions_us(count: f64, spec: &DeviceSpec) -> f64 {
    count / (spec.peak.f32_tflop_s * 0.5e6)
}

/// Time of `count` instructions of all kinds, few of them on floats, µs: from the V100 to the A100, lanes for integers work in parallel with those
/// for
/// floats, so twice as many instructions are issued.
pub(super) fn mixed_us(count: f64, spec: &DeviceSpec) -> f64 {
    let processor = Multiprocessor::from_capability(spec.compute_capability);
    instructions_us(count, spec) * f64::from(processor.lanes) / f64::from(processor.issued)
}

/// Time of blocks of work that run `slots` at a time on each multiprocessor, each `block_us` long, µs.
pub(super) fn waves_us(blocks: f64, slots: f64, block_us: f64, spec: &DeviceSpec) -> f64 {
    let room = f64::from(spec.multiprocessors) * slots.max(1.0);
    (blocks / room).max(1.0) * block_us
}

/// Fill of the last of several waves, 0 to 1: 1 if all are full.
pub(super) fn last_wave(blocks: f64, slots: f64) -> f64 {
    let waves = blocks / slots.max(1.0);
    let rest = waves.fract();
    if rest == 0.0 { 1.0 } else { rest }
}

/// The larger of two times that overlap, plus a part where neither hides the other.
pub(super) fn overlap(a: f64, b: f64) -> f64 {
    let (a, b) = (a.max(0.0), b.max(0.0));
    let large = a.max(b);
    if large == 0.0 {
        return 0.0;
    }
    let (x, y) = (a / large, b / large);
    large * (x.powi(4) + y.powi(4)).sqrt().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_overlap_cost_little_more_than_the_larger() {
        assert_eq!(overlap(0.0, 3.0), 3.0);
        assert_eq!(overlap(0.0, 0.0), 0.0);
        assert!(overlap(3.0, 3.0) < 3.6 && overlap(3.0, 3.0) > 3.0);
    }

    #[test]
    fn the_last_wave_is_a_share() {
        assert_eq!(last_wave(264.0, 132.0), 1.0);
        assert_eq!(last_wave(66.0, 132.0), 0.5);
    }
}
