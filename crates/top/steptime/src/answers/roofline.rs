//! Every kernel of a step under its roof.

use std::collections::BTreeMap;

use serde::Serialize;

use super::shared::SCHEMA;
use crate::ask::{KernelRoof, Roofline};
use crate::step::Step;

/// Every kernel of a step under its roof.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Roofed {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `roofline`.
    pub command: &'static str,
    /// The recording: its folder or file.
    pub name: String,
    /// What to call it, as [`Step::title`]. Not in the JSON.
    #[serde(skip)]
    pub title: String,
    /// The profile whose rates are the roof.
    pub device: String,
    /// `measured` or `predicted`.
    pub times: &'static str,
    /// Device time of all kernels, milliseconds.
    pub device_ms: f64,
    /// The shortest time the device could do it all in, milliseconds.
    pub attainable_ms: f64,
    /// Kernels of one op and shapes, the most expensive first.
    pub kernels: Vec<Row>,
}

/// The kernels of one op, of the same shapes and size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The op; empty outside of ops.
    pub op: String,
    /// The family of its kernels.
    pub family: &'static str,
    /// How many.
    pub count: usize,
    /// All together, microseconds.
    pub time_us: f64,
    /// Distinct bytes that one touches.
    pub bytes: u64,
    /// Arithmetic operations of one.
    pub flops: u64,
    /// Operations a byte.
    pub intensity: f64,
    /// Achieved, GB/s.
    pub gb_s: f64,
    /// Achieved, TFLOP/s.
    pub tflop_s: f64,
    /// The shortest possible time over the time taken.
    pub share: f64,
    /// `memory`, `cache`, `arithmetic`, `link` or `launch`.
    pub bound: &'static str,
    /// The shapes of the tensors that they were called with, where they were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<Vec<i64>>,
    /// The shortest time the device could do it in, all together, microseconds. Not in the JSON.
    #[serde(skip)]
    pub attainable_us: f64,
}

impl Row {
    /// One launch.
    fn new(kernel: &KernelRoof) -> Row {
        let (time_us, roof) = (kernel.time.as_micros(), &kernel.roof);
        Row {
            op: kernel.op.clone(),
            family: kernel.family,
            count: 1,
            time_us,
            bytes: roof.bytes,
            flops: roof.flops,
            intensity: roof.intensity(),
            gb_s: roof.bytes as f64 / time_us / 1e3,
            tflop_s: roof.flops as f64 / time_us / 1e6,
            share: roof.attainable.as_micros() / time_us,
            bound: roof.bound.name(),
            shapes: kernel.shapes.clone(),
            attainable_us: roof.attainable.as_micros(),
        }
    }

    fn merge(&mut self, other: &Row) {
        self.count += other.count;
        self.time_us += other.time_us;
        self.attainable_us += other.attainable_us;
        let each = self.time_us / self.count as f64;
        self.gb_s = self.bytes as f64 / each / 1e3;
        self.tflop_s = self.flops as f64 / each / 1e6;
        self.share = self.attainable_us / self.time_us;
    }
}

impl Roofline {
    /// The answer: launches of one op, shapes and size together. `step` is the step that was asked about.
    #[must_use]
    pub fn answer(&self, step: &Step) -> Roofed {
        let mut groups = BTreeMap::new();
        for row in self.kernels.iter().map(Row::new) {
            let key = (row.op.clone(), row.family, row.shapes.clone(), row.bytes, row.flops, row.bound);
            groups.entry(key).and_modify(|group: &mut Row| group.merge(&row)).or_insert(row);
        }
        let mut kernels: Vec<Row> = groups.into_values().collect();
        kernels.sort_by(|a, b| b.time_us.total_cmp(&a.time_us));
        Roofed {
            schema: SCHEMA,
            command: "roofline",
            name: step.name.clone(),
            title: step.title(),
            device: self.device.clone(),
            times: if self.predicted { "predicted" } else { "measured" },
            device_ms: kernels.iter().map(|row| row.time_us).sum::<f64>() / 1e3,
            attainable_ms: kernels.iter().map(|row| row.attainable_us).sum::<f64>() / 1e3,
            kernels,
        }
    }
}
