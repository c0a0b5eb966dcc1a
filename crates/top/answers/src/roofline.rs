//! Kernels of a step compared with the roofline.

use std::collections::BTreeMap;

use serde::Serialize;
use steptime_predict::{KernelRoof, NamedKernel, NamedKernels, Roofline, Step};
use steptime_trace::ActivityKind;

use super::shared::SCHEMA;

/// Kernels of a step compared with the roofline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RooflineReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `roofline`.
    pub command: &'static str,
    /// The recording: its folder or file.
    pub name: String,
    /// Its title, as [`Step::title`]. Not in the JSON.
    #[serde(skip)]
    pub title: String,
    /// The profile whose rates bound the kernels; for kernels known by name only, the GPU recorded on.
    pub device: String,
    /// `measured` or `predicted`.
    pub times: &'static str,
    /// Device time of all kernels, milliseconds.
    pub device_ms: f64,
    /// Shortest possible device time of all kernels, milliseconds; `None` where kernels are known by name only.
    pub attainable_ms: Option<f64>,
    /// Kernels of one op and shapes, or of one name, most expensive first.
    pub kernels: Vec<RooflineRow>,
}

/// The kernels of one op, of the same shapes and size. Where the input has no arguments of ops, the kernels of one
/// name: of these, only copies and fills have known work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RooflineRow {
    /// The op; empty outside of ops, and for kernels by name.
    pub op: String,
    /// Name of the kernel, copy or fill; only for kernels by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Family of its kernels; for kernels by name `kernel`, `copy` or `fill`.
    pub family: &'static str,
    /// Number of kernels.
    pub count: usize,
    /// Total time, microseconds.
    pub time_us: f64,
    /// Distinct bytes that one touches, where known.
    pub bytes: Option<u64>,
    /// Arithmetic operations of one, where known.
    pub flops: Option<u64>,
    /// Arithmetic intensity, operations per byte.
    pub intensity: Option<f64>,
    /// Achieved bandwidth, GB/s.
    pub gb_s: Option<f64>,
    /// Achieved arithmetic rate, TFLOP/s.
    pub tflop_s: Option<f64>,
    /// Shortest possible time over the actual time.
    pub share: Option<f64>,
    /// Bound: `memory`, `cache`, `arithmetic`, `link` or `launch`, where known.
    pub bound: Option<&'static str>,
    /// Shapes of the tensor arguments, where recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<Vec<i64>>,
    /// Shortest possible device time of all of them, microseconds. Not in the JSON.
    #[serde(skip)]
    pub attainable_us: f64,
}

impl RooflineRow {
    /// Makes the row of one launch.
    fn new(kernel: &KernelRoof) -> RooflineRow {
        let (time_us, roof) = (kernel.time.as_micros(), &kernel.roof);
        RooflineRow {
            op: kernel.op.clone(),
            kernel: None,
            family: kernel.family,
            count: 1,
            time_us,
            bytes: Some(roof.bytes),
            flops: Some(roof.flops),
            intensity: Some(roof.intensity()),
            gb_s: Some(roof.bytes as f64 / time_us / 1e3),
            tflop_s: Some(roof.flops as f64 / time_us / 1e6),
            share: Some(roof.attainable.as_micros() / time_us),
            bound: Some(roof.bound.name()),
            shapes: kernel.shapes.clone(),
            attainable_us: roof.attainable.as_micros(),
        }
    }

    /// Makes the row of the kernels, copies or fills of one name.
    fn from_kernel(kernel: &NamedKernel) -> RooflineRow {
        let time_us = kernel.time.as_micros();
        let attainable_us = kernel.roof.map(|(time, _)| time.as_micros());
        let moves = kernel.kind != ActivityKind::Kernel && kernel.bytes > 0;
        RooflineRow {
            op: String::new(),
            kernel: Some(kernel.name.clone()),
            family: match kernel.kind {
                ActivityKind::Kernel => "kernel",
                ActivityKind::Memcpy => "copy",
                ActivityKind::Memset => "fill",
            },
            count: kernel.count,
            time_us,
            bytes: moves.then(|| kernel.bytes / kernel.count as u64),
            flops: moves.then_some(0),
            intensity: moves.then_some(0.0),
            gb_s: moves.then(|| kernel.bytes as f64 / time_us / 1e3),
            tflop_s: moves.then_some(0.0),
            share: attainable_us.map(|attainable| attainable / time_us),
            bound: kernel.roof.map(|(_, bound)| bound.name()),
            shapes: Vec::new(),
            attainable_us: attainable_us.unwrap_or(0.0),
        }
    }

    fn merge(&mut self, other: &RooflineRow) {
        self.count += other.count;
        self.time_us += other.time_us;
        self.attainable_us += other.attainable_us;
        let each = self.time_us / self.count as f64;
        self.gb_s = self.bytes.map(|bytes| bytes as f64 / each / 1e3);
        self.tflop_s = self.flops.map(|flops| flops as f64 / each / 1e6);
        self.share = Some(self.attainable_us / self.time_us);
    }
}

impl RooflineReport {
    /// Makes the answer, with launches of one op, shapes and size merged. `step` is the step that was analysed.
    #[must_use]
    pub fn from_roofline(roofline: &Roofline, step: &Step) -> RooflineReport {
        let mut groups = BTreeMap::new();
        for row in roofline.kernels.iter().map(RooflineRow::new) {
            let key = (row.op.clone(), row.family, row.shapes.clone(), row.bytes, row.flops, row.bound);
            groups.entry(key).and_modify(|group: &mut RooflineRow| group.merge(&row)).or_insert(row);
        }
        let mut kernels: Vec<RooflineRow> = groups.into_values().collect();
        kernels.sort_by(|a, b| b.time_us.total_cmp(&a.time_us));
        RooflineReport {
            schema: SCHEMA,
            command: "roofline",
            name: step.name.clone(),
            title: step.title(),
            device: roofline.device.clone(),
            times: if roofline.predicted { "predicted" } else { "measured" },
            device_ms: kernels.iter().map(|row| row.time_us).sum::<f64>() / 1e3,
            attainable_ms: Some(kernels.iter().map(|row| row.attainable_us).sum::<f64>() / 1e3),
            kernels,
        }
    }
}

impl RooflineReport {
    /// Makes the answer, with kernels, copies and fills of one name merged. `step` is the step that was analysed.
    #[must_use]
    pub fn from_named_kernels(named: &NamedKernels, step: &Step) -> RooflineReport {
        let kernels: Vec<RooflineRow> = named.kernels.iter().map(RooflineRow::from_kernel).collect();
        RooflineReport {
            schema: SCHEMA,
            command: "roofline",
            name: step.name.clone(),
            title: step.title(),
            device: named.device.clone().unwrap_or_else(|| "an unnamed device".to_owned()),
            times: "measured",
            device_ms: kernels.iter().map(|row| row.time_us).sum::<f64>() / 1e3,
            attainable_ms: None,
            kernels,
        }
    }
}
