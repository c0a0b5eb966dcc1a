//! How far each kernel is from what the device could do, and what bounds it.

use steptime_aten::kernel::{Direction, Transfer};
use steptime_aten::{Kernel, KernelCall};
use steptime_cost::device::{Context, DeviceSpec};
use steptime_trace::Nanos;

/// What keeps a kernel from being faster.
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
    /// No kernel is shorter.
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

/// A kernel call under its roof.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roof {
    /// Distinct bytes it touches.
    pub bytes: u64,
    /// Arithmetic operations.
    pub flops: u64,
    /// The shortest time the device could do it in, by its achieved rates.
    pub attainable: Nanos,
    /// What that time goes to.
    pub bound: Bound,
}

/// What the link itself reaches: from page-locked memory. Staging makes pageable copies slower, not the link.
fn link_gb_s(transfer: &Transfer, spec: &DeviceSpec) -> f64 {
    match transfer.direction {
        Direction::ToDevice => spec.transfer.to_device_pinned_gb_s,
        Direction::ToHost => spec.transfer.to_host_pinned_gb_s,
    }
}

impl Roof {
    /// The roof over one call. Bytes that the context finds in the second-level cache move at its rate.
    #[must_use]
    pub fn of(call: &KernelCall, context: &Context, spec: &DeviceSpec) -> Roof {
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

    /// Arithmetic operations a byte.
    #[must_use]
    pub fn intensity(&self) -> f64 {
        self.flops as f64 / self.bytes.max(1) as f64
    }
}
