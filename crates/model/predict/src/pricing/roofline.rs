//! Roofline of each kernel: its shortest possible time and its bound.

use steptime_aten::kernel::{Transfer, TransferDirection};
use steptime_aten::{Kernel, KernelCall};
use steptime_cost::device::{Context, DeviceSpec};
use steptime_trace::Nanos;

/// Resource that bounds a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// Device memory.
    Memory,
    /// The second-level cache.
    Cache,
    /// Arithmetic.
    Arithmetic,
    /// The link to the host.
    Link,
    /// Launch latency: no kernel is shorter.
    Launch,
}

impl Bound {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Memory => "memory",
            Bound::Cache => "cache",
            Bound::Arithmetic => "arithmetic",
            Bound::Link => "link",
            Bound::Launch => "launch",
        }
    }
}

/// Roofline of a kernel call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roof {
    /// Distinct bytes it touches.
    pub bytes: u64,
    /// Arithmetic operations.
    pub flops: u64,
    /// Shortest possible time on the device, by its achieved rates.
    pub attainable: Nanos,
    /// Resource that this time is spent on.
    pub bound: Bound,
}

/// Bandwidth of the link itself, from page-locked memory. Pageable copies are slower because of staging, not because of the link.
fn link_gb_s(transfer: &Transfer, spec: &DeviceSpec) -> f64 {
    match transfer.direction {
        TransferDirection::ToDevice => spec.transfer.to_device_pinned_gb_s,
        TransferDirection::ToHost => spec.transfer.to_host_pinned_gb_s,
    }
}

impl Roof {
    /// Computes the roofline of one call. Bytes that the context finds in the second-level cache move at its rate.
    #[must_use]
    pub fn compute(call: &KernelCall, context: &Context, spec: &DeviceSpec) -> Roof {
        let bytes = call.footprint();
        let missed: f64 = call
            .operands
            .iter()
            .enumerate()
            .map(|(at, operand)| operand.bytes as f64 * (1.0 - context.residency(at, spec)))
            .sum();
        let rate = match &call.kernel {
            Kernel::Gemm(gemm) => spec.matrix_tflop_s(gemm.precision),
            Kernel::Conv(conv) => spec.matrix_tflop_s(conv.precision),
            Kernel::Attention(attention) => spec.matrix_tflop_s(attention.precision),
            Kernel::Rnn(rnn) => spec.matrix_tflop_s(rnn.precision),
            _ => spec.vector_tflop_s(call.dtype),
        };
        let link = match &call.kernel {
            Kernel::Transfer(transfer) => transfer.bytes as f64 / (link_gb_s(transfer, spec) * 1e3),
            _ => 0.0,
        };
        let times = [
            (spec.dram_us(missed), Bound::Memory),
            (spec.l2_us(bytes as f64), Bound::Cache),
            (DeviceSpec::compute_us(call.flops as f64, rate), Bound::Arithmetic),
            (link, Bound::Link),
            (spec.launch.floor_us, Bound::Launch),
        ];
        let (us, bound) = times
            .into_iter()
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((spec.launch.floor_us, Bound::Launch));
        Roof { bytes, flops: call.flops, attainable: Nanos::from_micros_f64(us), bound }
    }

    /// Arithmetic operations per byte.
    #[must_use]
    pub fn intensity(&self) -> f64 {
        self.flops as f64 / self.bytes.max(1) as f64
    }
}
