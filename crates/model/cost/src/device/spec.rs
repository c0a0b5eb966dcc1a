//! Specification of a GPU: facts that need no timing of model kernels.

use serde::{Deserialize, Serialize};
use steptime_aten::Dtype;
use steptime_aten::kernel::{Precision, Transfer, TransferDirection};
use steptime_launch::Gpu;

use super::constants::Constants;

/// A GPU: its data sheet, and the rates that simple benchmarks reach on it.
///
/// Rates are those *achieved*, not those of the data sheet. Decimal prefixes throughout: a GB is 1e9 bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Name, such as `NVIDIA H200`.
    pub name: String,
    /// Architecture, such as `Hopper`.
    pub architecture: String,
    /// Compute capability, major and minor.
    pub compute_capability: [u8; 2],
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Clock of the multiprocessors under load, MHz.
    pub clock_mhz: f64,
    /// Source of these numbers.
    pub source: String,
    pub memory: MemorySpec,
    pub l2: CacheSpec,
    pub launch: LaunchSpec,
    pub peak: PeakSpec,
    pub transfer: TransferSpec,
    /// Constants of formulas, if measured on this GPU; the defaults otherwise.
    #[serde(
        default,
        deserialize_with = "Constants::over_defaults",
        skip_serializing_if = "Constants::are_default"
    )]
    pub constants: Constants,
}

/// Device memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySpec {
    /// Size, bytes.
    pub bytes: u64,
    /// Rate of a large copy within the device, read plus written, GB/s.
    pub rate_gb_s: f64,
    /// Source of these numbers.
    pub source: String,
}

/// The second-level cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Size, bytes.
    pub bytes: u64,
    /// Part that holds reused data, bytes: less than the size if two halves keep copies
    /// of one line, or if lines are evicted early.
    pub effective_bytes: u64,
    /// Steepness of the fall of residency as the reuse distance passes the effective size: the power `p` in
    /// `1 / (1 + (distance / effective)^p)`.
    pub sharpness: f64,
    /// Rate of a kernel whose operands are all in the cache, GB/s.
    pub rate_gb_s: f64,
    /// Source of these numbers.
    pub source: String,
}

/// Launching kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchSpec {
    /// Duration of the shortest kernel, µs.
    pub floor_us: f64,
    /// Source of this number.
    pub source: String,
}

/// Achieved rates of arithmetic, TFLOP/s; 0 if the device has no such unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeakSpec {
    /// 64-bit.
    pub f64_tflop_s: f64,
    /// 32-bit.
    pub f32_tflop_s: f64,
    /// TF32 on tensor cores.
    pub tf32_tflop_s: f64,
    /// bf16 on tensor cores.
    pub bf16_tflop_s: f64,
    /// Half precision, on tensor cores if there are any.
    pub f16_tflop_s: f64,
    /// 8-bit, integer or float, on tensor cores.
    pub i8_tflop_s: f64,
    /// Source of these numbers.
    pub source: String,
}

/// Copies between host and device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferSpec {
    /// Host to device from page-locked memory, GB/s.
    pub to_device_pinned_gb_s: f64,
    /// Host to device from pageable memory, GB/s.
    pub to_device_pageable_gb_s: f64,
    /// Device to host into page-locked memory, GB/s.
    pub to_host_pinned_gb_s: f64,
    /// Device to host into pageable memory, GB/s.
    pub to_host_pageable_gb_s: f64,
    /// Duration of the shortest copy, µs.
    pub floor_us: f64,
    /// Source of these numbers.
    pub source: String,
}

impl TransferSpec {
    /// Returns the rate of a copy, GB/s.
    #[must_use]
    pub fn gb_s(&self, transfer: &Transfer) -> f64 {
        match (transfer.direction, transfer.pinned) {
            (TransferDirection::ToDevice, true) => self.to_device_pinned_gb_s,
            (TransferDirection::ToDevice, false) => self.to_device_pageable_gb_s,
            (TransferDirection::ToHost, true) => self.to_host_pinned_gb_s,
            (TransferDirection::ToHost, false) => self.to_host_pageable_gb_s,
        }
    }

    /// Returns the same link in the host of another GPU. A pageable copy is staged by the host, then sent: its extra time over a
    /// page-locked one is the host's, and independent of the GPU.
    #[must_use]
    pub fn in_host_of(&self, other: &TransferSpec) -> TransferSpec {
        let staged = |pageable: f64, pinned: f64, own: f64| {
            1.0 / ((1.0 / pageable - 1.0 / pinned).max(0.0) + 1.0 / own)
        };
        TransferSpec {
            to_device_pageable_gb_s: staged(
                other.to_device_pageable_gb_s,
                other.to_device_pinned_gb_s,
                self.to_device_pinned_gb_s,
            ),
            to_host_pageable_gb_s: staged(
                other.to_host_pageable_gb_s,
                other.to_host_pinned_gb_s,
                self.to_host_pinned_gb_s,
            ),
            ..self.clone()
        }
    }
}

/// Reason why a specification is not usable.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A constant of a formula is zero, negative or not a number.
    #[error("constants.{field} is {value}, and must be a positive number")]
    Constant {
        /// Constant, with its group.
        field: String,
        value: f64,
    },
    /// A rate or size is zero, negative or not a number.
    #[error("{field} is {value}, and must be a positive number")]
    NotPositive {
        /// Field, with its table.
        field: &'static str,
        value: f64,
    },
    /// A value beyond any real GPU: most likely in another unit.
    #[error("{field} is {value}, and no GPU has more than {most}: is it in another unit?")]
    Beyond {
        /// Field, with its table.
        field: &'static str,
        value: f64,
        /// Greatest accepted value.
        most: f64,
    },
    /// The rate of an optional unit is negative or not a number.
    #[error("{field} is {value}, and must be a positive number, or 0 for none")]
    Negative {
        /// Field, with its table.
        field: &'static str,
        value: f64,
    },
}

impl DeviceSpec {
    /// Returns the properties that the gather plan needs.
    #[must_use]
    pub fn gpu(&self) -> Gpu {
        Gpu {
            multiprocessors: self.multiprocessors,
            cache_bytes: self.l2.effective_bytes as f64,
            memory_gb_s: self.memory.rate_gb_s,
            floor_us: self.launch.floor_us,
            gather: (&self.constants.gather_plan).into(),
        }
    }

    /// Returns the time to move bytes between device memory and the processors at the achieved rate, µs.
    #[must_use]
    pub fn dram_us(&self, bytes: f64) -> f64 {
        bytes / (self.memory.rate_gb_s * 1e3)
    }

    /// Returns the time to move bytes that are in the second-level cache, µs.
    #[must_use]
    pub fn l2_us(&self, bytes: f64) -> f64 {
        bytes / (self.l2.rate_gb_s * 1e3)
    }

    /// Returns the achieved rate of matrix products, TFLOP/s. A precision without a unit is computed in
    /// 32-bit arithmetic.
    #[must_use]
    pub fn matrix_tflop_s(&self, precision: Precision) -> f64 {
        let peak = &self.peak;
        let rate = match precision {
            Precision::F64 => peak.f64_tflop_s,
            Precision::F32 => peak.f32_tflop_s,
            Precision::Tf32 => peak.tf32_tflop_s,
            Precision::Bf16 => peak.bf16_tflop_s,
            Precision::F16 => peak.f16_tflop_s,
            Precision::F8 | Precision::I8 => peak.i8_tflop_s,
        };
        if rate > 0.0 { rate } else { peak.f32_tflop_s }
    }

    /// Returns the achieved rate of arithmetic outside tensor cores, TFLOP/s: 16-bit floats are computed in 32 bits.
    #[must_use]
    pub fn vector_tflop_s(&self, dtype: Dtype) -> f64 {
        match dtype {
            Dtype::F64 | Dtype::Complex128 if self.peak.f64_tflop_s > 0.0 => {
                self.peak.f64_tflop_s.min(self.peak.f32_tflop_s)
            }
            _ => self.peak.f32_tflop_s,
        }
    }

    /// Returns the time of `flops` operations at a rate in TFLOP/s, µs.
    #[must_use]
    pub fn compute_us(flops: f64, tflop_s: f64) -> f64 {
        flops / (tflop_s * 1e6)
    }

    /// Returns the reason why the device does not compute with a type, and the remedy; `None` if it does.
    #[must_use]
    pub fn lacks(&self, dtype: Dtype) -> Option<String> {
        match dtype {
            // Ada and Hopper.
            Dtype::F8 if self.compute_capability < [8, 9] => {
                Some(self.without("8-bit floats", "8.9", "ask for float16"))
            }
            Dtype::F8 if self.peak.i8_tflop_s <= 0.0 => Some(format!(
                "8-bit floats were not measured on {}; query float16, which takes longer",
                self.name
            )),
            Dtype::Bf16 if self.compute_capability < [8, 0] => {
                Some(self.without("bfloat16", "8.0", "ask for float16"))
            }
            _ => None,
        }
    }

    /// Returns the same for TF32, if it is requested.
    #[must_use]
    pub fn lacks_tf32(&self, asked: bool) -> Option<String> {
        let lacks = asked && self.compute_capability < [8, 0];
        lacks.then(|| self.without("TF32", "8.0", "ask for float32"))
    }

    fn without(&self, what: &str, since: &str, remedy: &str) -> String {
        let [major, minor] = self.compute_capability;
        format!(
            "{} ({}, compute capability {major}.{minor}) has no {what}: devices from {since} on do; {remedy}",
            self.name, self.architecture
        )
    }

    /// Returns fields with their values and greatest accepted values: several times those of any GPU. Rates of arithmetic are limited by
    /// the cycles of the multiprocessors.
    fn limits(&self) -> [(&'static str, f64, f64); 9] {
        let cycles = f64::from(self.multiprocessors) * self.clock_mhz / 1e6;
        let (vector, tensor) = (1024.0 * cycles, 65_536.0 * cycles);
        [
            ("clock_mhz", self.clock_mhz, 6000.0),
            ("memory.rate_gb_s", self.memory.rate_gb_s, 1e5),
            ("l2.rate_gb_s", self.l2.rate_gb_s, 1e6),
            ("l2.effective_bytes", self.l2.effective_bytes as f64, 2.0 * self.l2.bytes as f64),
            ("launch.floor_us", self.launch.floor_us, 100.0),
            ("peak.f32_tflop_s", self.peak.f32_tflop_s, vector),
            ("peak.tf32_tflop_s", self.peak.tf32_tflop_s, tensor),
            ("peak.bf16_tflop_s", self.peak.bf16_tflop_s, tensor),
            ("peak.f16_tflop_s", self.peak.f16_tflop_s, tensor),
        ]
    }

    /// Checks that rates and sizes are positive numbers, and no more than silicon allows.
    ///
    /// # Errors
    ///
    /// The first field that fails, with its value.
    pub fn check(&self) -> Result<(), SpecError> {
        let positive = [
            ("multiprocessors", f64::from(self.multiprocessors)),
            ("clock_mhz", self.clock_mhz),
            ("memory.bytes", self.memory.bytes as f64),
            ("memory.rate_gb_s", self.memory.rate_gb_s),
            ("l2.bytes", self.l2.bytes as f64),
            ("l2.effective_bytes", self.l2.effective_bytes as f64),
            ("l2.sharpness", self.l2.sharpness),
            ("l2.rate_gb_s", self.l2.rate_gb_s),
            ("launch.floor_us", self.launch.floor_us),
            ("peak.f32_tflop_s", self.peak.f32_tflop_s),
            ("transfer.to_device_pinned_gb_s", self.transfer.to_device_pinned_gb_s),
            ("transfer.to_device_pageable_gb_s", self.transfer.to_device_pageable_gb_s),
            ("transfer.to_host_pinned_gb_s", self.transfer.to_host_pinned_gb_s),
            ("transfer.to_host_pageable_gb_s", self.transfer.to_host_pageable_gb_s),
            ("transfer.floor_us", self.transfer.floor_us),
        ];
        let none_or_positive = [
            ("peak.f64_tflop_s", self.peak.f64_tflop_s),
            ("peak.tf32_tflop_s", self.peak.tf32_tflop_s),
            ("peak.bf16_tflop_s", self.peak.bf16_tflop_s),
            ("peak.f16_tflop_s", self.peak.f16_tflop_s),
            ("peak.i8_tflop_s", self.peak.i8_tflop_s),
        ];
        for (field, value) in positive {
            if !(value > 0.0 && value.is_finite()) {
                return Err(SpecError::NotPositive { field, value });
            }
        }
        for (field, value, most) in self.limits() {
            if value > most {
                return Err(SpecError::Beyond { field, value, most });
            }
        }
        if let Some((field, value)) = self.constants.wrong() {
            return Err(SpecError::Constant { field, value });
        }
        for (field, value) in none_or_positive {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(SpecError::Negative { field, value });
            }
        }
        Ok(())
    }
}
