//! Duration of a kernel on one GPU from that on another, if only its name is known.

use steptime_aten::kernel_name::Work;
use steptime_trace::Nanos;

use super::estimate::{Estimate, Source};
use super::spec::DeviceSpec;

/// Half-width of a kernel's own error, and of the error that all kernels scaled this way share. Only the ratio of two
/// devices' rates is used: a kernel bound by latency keeps its time, and one that newer units accelerate
/// gains more.
const OWN: f64 = 0.4;
const SHARED: f64 = 0.35;

/// Scales a kernel's time measured on `from` to `to`: its start as it is there, the rest by the ratio of the rates
/// of its kind of work.
#[must_use]
pub fn scaled(measured: Nanos, work: Work, from: &DeviceSpec, to: &DeviceSpec) -> Estimate {
    let ratio = match work {
        Work::Bytes => from.memory.rate_gb_s / to.memory.rate_gb_s,
        Work::Products(precision) => from.matrix_tflop_s(precision) / to.matrix_tflop_s(precision),
        Work::Exchange => 1.0,
    };
    let measured = measured.as_micros();
    let busy = (measured - from.launch.floor_us).max(0.0);
    let us = (measured.min(from.launch.floor_us) / from.launch.floor_us) * to.launch.floor_us + busy * ratio;
    // Scaling from a device to itself adds no error.
    let unlike = if from == to { 0.0 } else { 1.0 };
    Estimate {
        time: Nanos::from_micros_f64(us),
        own: OWN * unlike,
        shared: SHARED * unlike,
        source: Source::Scaled,
        extrapolated: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::families::fixture;
    use steptime_aten::kernel::Precision;

    #[test]
    fn bytes_go_with_memory_and_products_with_arithmetic() {
        let from = fixture::h200();
        let mut to = from.clone();
        to.name = "other".into();
        to.memory.rate_gb_s *= 2.0;
        to.peak.f32_tflop_s *= 4.0;
        let start = from.launch.floor_us;
        let time =
            |work, busy: f64| scaled(Nanos::from_micros_f64(start + busy), work, &from, &to).time.as_micros();
        assert!((time(Work::Bytes, 100.0) - start - 50.0).abs() < 0.01);
        assert!((time(Work::Products(Precision::F32), 100.0) - start - 25.0).abs() < 0.01);
        assert!((time(Work::Bytes, 0.0) - start).abs() < 0.01);
        assert!(scaled(Nanos(5_000), Work::Bytes, &from, &to).half_width() > 0.4);
        assert_eq!(scaled(Nanos(5_000), Work::Bytes, &from, &from).time, Nanos(5_000));
    }
}
