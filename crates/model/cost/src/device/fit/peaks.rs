//! Arithmetic rates that are not in a sweep's metadata, from its rows.

use steptime_aten::Kernel;
use steptime_aten::kernel::Precision;

use crate::device::observation::Observation;

/// Rate of the fastest product of 8-bit floats, TFLOP/s; `None` if none was measured.
#[must_use]
pub fn f8_tflop_s(observations: &[Observation]) -> Option<f64> {
    let of_f8 = |row: &&Observation| matches!(&row.call.kernel, Kernel::Gemm(gemm) if gemm.precision == Precision::F8);
    let rate = |row: &Observation| row.call.flops as f64 / row.time.as_micros() / 1e6;
    observations.iter().filter(of_f8).map(rate).filter(|rate| rate.is_finite()).max_by(f64::total_cmp)
}
