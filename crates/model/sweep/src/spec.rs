//! Specification of the measured GPU.

use steptime_cost::device::constants::Constants;
use steptime_cost::device::spec::{CacheSpec, LaunchSpec, MemorySpec, PeakSpec, TransferSpec};
use steptime_cost::device::{DeviceSpec, fit::cache, fit::peaks};

use crate::error::Error;
use crate::observe::Observations;
use crate::read::Sweep;

/// Derives a specification from a sweep's metadata and rows: sizes from the driver, rates measured with the sweep, the
/// effective size and the rate of the cache from rows in different states of it.
///
/// # Errors
///
/// Metadata that lack a size or rate.
pub fn spec(sweep: &Sweep, observed: &Observations) -> Result<DeviceSpec, Error> {
    let meta = &sweep.meta;
    let number = |name: &str| meta.number(name).ok_or_else(|| Error::Spec(name.into()));
    let text = |name: &str| meta.get(name).ok_or_else(|| Error::Spec(name.into()));
    let capability = text("compute_capability")?;
    let (major, minor) = capability.split_once('.').unwrap_or((capability, "0"));
    let part = |text: &str| {
        text.parse::<u8>().map_err(|_| Error::Spec(format!("valid compute capability ({capability})")))
    };
    let compute_capability = [part(major)?, part(minor)?];
    let source = || "measured by steptime.measure beside the sweep".to_owned();
    let rate = number("peak_copy_gb_s")?;
    let l2 = number("l2_bytes")?;
    let found = cache::measure(&observed.observations, l2, rate);
    let pinned = number("peak_h2d_pinned_gb_s")?;
    let spec = DeviceSpec {
        name: text("device")?.into(),
        architecture: architecture(compute_capability).into(),
        compute_capability,
        multiprocessors: number("sm_count")? as u32,
        clock_mhz: number("clock_mhz")?,
        source: format!(
            "driver {}, CUDA {}",
            meta.get("driver").unwrap_or("?"),
            meta.get("cuda").unwrap_or("?")
        ),
        memory: MemorySpec { bytes: number("memory_bytes")? as u64, rate_gb_s: rate, source: source() },
        l2: CacheSpec {
            bytes: l2 as u64,
            effective_bytes: found.effective_bytes as u64,
            sharpness: found.sharpness,
            rate_gb_s: found.rate_gb_s,
            source: found.source,
        },
        launch: LaunchSpec {
            floor_us: cache::floor_us(&observed.observations),
            source: "shortest kernels of the sweep".into(),
        },
        peak: PeakSpec {
            // Not measured: matrix products of doubles are not among a sweep's peaks.
            f64_tflop_s: 0.0,
            f32_tflop_s: number("peak_matmul_fp32_tflop_s")?,
            tf32_tflop_s: meta.number("peak_matmul_tf32_tflop_s").unwrap_or(0.0),
            bf16_tflop_s: meta.number("peak_matmul_bf16_tflop_s").unwrap_or(0.0),
            f16_tflop_s: meta.number("peak_matmul_fp16_tflop_s").unwrap_or(0.0),
            i8_tflop_s: peaks::f8_tflop_s(&observed.observations).unwrap_or(0.0),
            source: source(),
        },
        transfer: TransferSpec {
            to_device_pinned_gb_s: pinned,
            to_device_pageable_gb_s: number("peak_h2d_pageable_gb_s")?,
            to_host_pinned_gb_s: number("peak_d2h_pinned_gb_s")?,
            to_host_pageable_gb_s: number("peak_d2h_pageable_gb_s")?,
            floor_us: cache::copy_floor_us(&observed.observations),
            source: source(),
        },
        constants: Constants::default(),
    };
    Ok(spec)
}

/// Returns NVIDIA's name of an architecture.
fn architecture([major, minor]: [u8; 2]) -> &'static str {
    match (major, minor) {
        (6, _) => "Pascal",
        (7, 0..=2) => "Volta",
        (7, _) => "Turing",
        (8, 9) => "Ada Lovelace",
        (8, _) => "Ampere",
        (9, _) => "Hopper",
        (10..=12, _) => "Blackwell",
        _ => "unknown",
    }
}
