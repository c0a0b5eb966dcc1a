//! The published formulas, as a baseline: "Building a Performance Model for Deep Learning Recommendation Model
//! Training on GPUs" (Lin et al. 2022, arXiv 2201.07821).
//!
//! They account neither for launch floors nor for data in the cache. Products, convolutions, transposes and the
//! lower-triangle extraction have no formula there: the paper learns them.

pub mod embedding;

use steptime_aten::KernelCall;
use steptime_aten::kernel::Transfer;

use super::spec::DeviceSpec;

/// Kind of a family's `paper` model. The paper has a formula for three kinds of kernels, learns four, and uses the
/// roofline for the rest; kernels that it does not name get the roofline here, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaperModel {
    /// A formula of the paper's authors.
    Formula,
    /// A network as in the paper, but with less training: on 6,000 rows at most, the better of two of the 280 that they tried.
    Network,
    /// Roofline with achieved rates.
    Roofline,
    /// None: steptime's formula is used instead.
    None,
}

impl PaperModel {
    /// Returns a short description.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PaperModel::Formula => "the paper's formula",
            PaperModel::Network => "a network as the paper's, of 6,000 rows",
            PaperModel::Roofline => "the roofline",
            PaperModel::None => "our formula, for want of a published one",
        }
    }
}

/// Share of the memory rate that the paper assumes for concatenations.
const CONCAT_SHARE: f64 = 0.79;

/// Time of the corrected roofline, µs: the longer of operations at the peak rate and bytes at the rate of a
/// benchmark.
#[must_use]
pub fn roofline(call: &KernelCall, spec: &DeviceSpec) -> f64 {
    let bytes = (call.bytes_read() + call.bytes_written()) as f64;
    let flops = DeviceSpec::compute_us(call.flops as f64, spec.vector_tflop_s(call.dtype));
    positive(spec.dram_us(bytes).max(flops))
}

/// Time of a concatenation, µs: all bytes read and written, at 0.79 of the rate.
#[must_use]
pub fn concat(call: &KernelCall, spec: &DeviceSpec) -> f64 {
    positive(spec.dram_us((call.bytes_read() + call.bytes_written()) as f64) / CONCAT_SHARE)
}

/// Time of a copy between host and device, µs: its bytes at the rate of the bus, as published. A copy from page-locked memory
/// reaches it; pageable ones, which the paper does not distinguish, take several times as long.
#[must_use]
pub fn transfer(transfer: &Transfer, spec: &DeviceSpec) -> f64 {
    positive(transfer.bytes as f64 / (spec.transfer.to_device_pinned_gb_s * 1e3))
}

/// Keeps a price above zero: a formula without any work gives zero.
fn positive(us: f64) -> f64 {
    us.max(1e-3)
}
