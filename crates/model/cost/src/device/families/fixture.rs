//! A device and calls for tests.

use smallvec::smallvec;
use steptime_aten::{Dtype, Kernel, KernelCall, Operand, Role, Slot};

use crate::device::constants::Constants;
use crate::device::profile::header::Header;
use crate::device::spec::{CacheSpec, DeviceSpec, LaunchSpec, MemorySpec, PeakSpec, TransferSpec};

/// Measured specification of an H200.
pub fn h200() -> DeviceSpec {
    let source = String::from("measured");
    DeviceSpec {
        name: "NVIDIA H200".into(),
        architecture: "Hopper".into(),
        compute_capability: [9, 0],
        multiprocessors: 132,
        clock_mhz: 1755.0,
        source: source.clone(),
        memory: MemorySpec { bytes: 141_000_000_000, rate_gb_s: 4230.0, source: source.clone() },
        l2: CacheSpec {
            bytes: 52_428_800,
            effective_bytes: 35_000_000,
            sharpness: 4.0,
            rate_gb_s: 5500.0,
            source: source.clone(),
        },
        launch: LaunchSpec { floor_us: 0.75, source: source.clone() },
        peak: PeakSpec {
            f64_tflop_s: 50.0,
            f32_tflop_s: 50.0,
            tf32_tflop_s: 370.0,
            bf16_tflop_s: 700.0,
            f16_tflop_s: 700.0,
            i8_tflop_s: 1400.0,
            source: source.clone(),
        },
        transfer: TransferSpec {
            to_device_pinned_gb_s: 55.0,
            to_device_pageable_gb_s: 15.0,
            to_host_pinned_gb_s: 55.0,
            to_host_pageable_gb_s: 10.0,
            floor_us: 1.3,
            source,
        },
        constants: Constants::default(),
    }
}

/// A call of 32-bit floats that reads and writes these numbers of bytes.
pub fn call(kernel: Kernel, read: &[u64], written: &[u64], flops: u64) -> KernelCall {
    let mut operands: smallvec::SmallVec<[Operand; 4]> = smallvec![];
    for (at, &bytes) in (0..).zip(read) {
        operands.push(Operand { slot: Slot::Input(at, 0), role: Role::Read, bytes });
    }
    for (at, &bytes) in (0..).zip(written) {
        operands.push(Operand { slot: Slot::Output(at, 0), role: Role::Write, bytes });
    }
    KernelCall { kernel, dtype: Dtype::F32, operands, flops, launches: 1 }
}

/// The specification of a shipped profile.
pub fn shipped(name: &str) -> DeviceSpec {
    let path = format!("{}/../../../profiles/{name}/profile.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Header::parse(&text).unwrap_or_else(|error| panic!("{path}: {error}")).device
}

/// Asserts that a time is within a share of the measured one, either way.
pub fn near(predicted: f64, measured: f64, within: f64) {
    assert!((predicted / measured).ln().abs() < within.ln_1p(), "{predicted} against {measured}");
}
