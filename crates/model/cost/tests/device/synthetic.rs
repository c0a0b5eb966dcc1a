//! Synthetic measurements.

use smallvec::smallvec;
use steptime_aten::kernel::{Elementwise, Epilogue, Gemm, Layout, Precision, Work};
use steptime_aten::{Dtype, Kernel, KernelCall, Operand, Role, Slot};
use steptime_cost::device::constants::Constants;
use steptime_cost::device::learn::cross_validation::mix;
use steptime_cost::device::spec::{CacheSpec, LaunchSpec, MemorySpec, PeakSpec, TransferSpec};
use steptime_cost::device::{Context, DeviceSpec, Observation, families};
use steptime_trace::Nanos;

/// A fictitious GPU.
pub fn spec() -> DeviceSpec {
    let source = || "made up".to_owned();
    DeviceSpec {
        name: "Example".into(),
        architecture: "None".into(),
        compute_capability: [9, 0],
        multiprocessors: 132,
        clock_mhz: 1980.0,
        source: source(),
        memory: MemorySpec { bytes: 141_000_000_000, rate_gb_s: 4230.0, source: source() },
        l2: CacheSpec {
            bytes: 60_000_000,
            effective_bytes: 40_000_000,
            sharpness: 4.0,
            rate_gb_s: 9000.0,
            source: source(),
        },
        launch: LaunchSpec { floor_us: 1.2, source: source() },
        peak: PeakSpec {
            f64_tflop_s: 60.0,
            f32_tflop_s: 50.0,
            tf32_tflop_s: 400.0,
            bf16_tflop_s: 700.0,
            f16_tflop_s: 700.0,
            i8_tflop_s: 1400.0,
            source: source(),
        },
        transfer: TransferSpec {
            to_device_pinned_gb_s: 55.0,
            to_device_pageable_gb_s: 12.0,
            to_host_pinned_gb_s: 55.0,
            to_host_pageable_gb_s: 10.0,
            floor_us: 1.5,
            source: source(),
        },
        constants: Constants::default(),
    }
}

fn uniform(at: u64, seed: u64) -> f64 {
    (mix(at, seed) >> 11) as f64 / (1u64 << 53) as f64
}

fn size(at: u64, seed: u64, low: f64, high: f64) -> u64 {
    (low * (high / low).powf(uniform(at, seed))).round() as u64
}

fn operand(slot: Slot, role: Role, bytes: u64) -> Operand {
    Operand { slot, role, bytes }
}

/// A matrix product.
pub fn gemm(m: u64, n: u64, k: u64) -> KernelCall {
    let gemm = Gemm {
        batch: 1,
        m,
        n,
        k,
        a_transposed: false,
        b_transposed: true,
        lda: k,
        ldb: k,
        epilogue: Epilogue::None,
        precision: Precision::F32,
    };
    let operands = smallvec![
        operand(Slot::Input(0, 0), Role::Read, m * k * 4),
        operand(Slot::Input(1, 0), Role::Read, n * k * 4),
        operand(Slot::Output(0, 0), Role::Write, m * n * 4),
    ];
    KernelCall { kernel: Kernel::Gemm(gemm), dtype: Dtype::F32, operands, flops: 2 * m * n * k, launches: 1 }
}

/// An elementwise kernel.
pub fn elementwise(op: &'static str, numel: u64) -> KernelCall {
    let kernel = Elementwise { op, work: Work::Light, numel, inputs: 1, layout: Layout::Vectorized };
    let operands = smallvec![
        operand(Slot::Input(0, 0), Role::Read, numel * 4),
        operand(Slot::Output(0, 0), Role::Write, numel * 4),
    ];
    KernelCall { kernel: Kernel::Elementwise(kernel), dtype: Dtype::F32, operands, flops: numel, launches: 1 }
}

/// Cases in a cold and a warm state. Times are the formula, times a factor that trees can learn, times noise.
pub fn observations(cases: u32) -> Vec<Observation> {
    let spec = spec();
    let mut rows = Vec::new();
    for case in 0..cases {
        let at = u64::from(case);
        let (call, op) = match case % 3 {
            0 => {
                let [m, n, k] = [1, 2, 3].map(|seed| size(at, seed, 8.0, 4096.0));
                (gemm(m, n, k), "aten::mm")
            }
            1 => (elementwise("relu", size(at, 4, 1e3, 3e7)), "aten::relu"),
            _ => (elementwise("add", size(at, 5, 1e3, 3e7)), "aten::add"),
        };
        for ctx in [Context::cold(&call), Context::warm(&call)] {
            let formula = families::find(&call.kernel).analytic(&call, &ctx, &spec);
            let bend = match &call.kernel {
                Kernel::Gemm(g) => {
                    if g.k % 8 == 0 {
                        0.8
                    } else {
                        1.3 + 0.4 * (g.n as f64 / 4096.0)
                    }
                }
                Kernel::Elementwise(e) => {
                    if e.numel > 1 << 20 {
                        1.2
                    } else {
                        0.9
                    }
                }
                _ => 1.0,
            };
            let noise = 1.0 + 0.06 * (uniform(rows.len() as u64, 6) - 0.5);
            let time = Nanos::from_micros_f64(formula * bend * noise);
            rows.push(Observation { case, op: op.into(), call: call.clone(), ctx, time });
        }
    }
    rows
}
