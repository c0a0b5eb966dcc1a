//! Parts that several answers share.

use serde::{Serialize, Serializer};
use steptime_graph::{StepGraph, StepSource};
use steptime_sim::breakdown::KernelCost;
use steptime_step::{MemoryKind, Peak};
use steptime_trace::Nanos;

/// Version of every answer; raised when a key changes its meaning.
pub const SCHEMA: u32 = 1;

/// Writes pairs as an object that keeps their order.
pub(super) fn as_object<K: Serialize, V: Serialize, S: Serializer>(
    pairs: &[(K, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// Peak device memory of tensors, megabytes (10^6 bytes): total, and by kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct PeakMemory {
    #[serde(serialize_with = "as_object")]
    parts: Vec<(&'static str, f64)>,
}

impl PeakMemory {
    pub(super) fn new(peak: &Peak) -> PeakMemory {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let kinds = MemoryKind::ALL.into_iter().map(|kind| (kind.name(), mb(peak.bytes_of(kind))));
        PeakMemory { parts: std::iter::once(("total", mb(peak.total()))).chain(kinds).collect() }
    }

    /// Total, megabytes.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.parts.first().map_or(0.0, |(_, mb)| *mb)
    }

    /// Memory by kind, megabytes.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.parts.iter().skip(1).copied()
    }
}

/// Milliseconds.
pub(super) fn ms(time: Nanos) -> f64 {
    time.as_millis()
}

/// Samples per second of a step; `None` where either is unknown.
pub(super) fn samples_per_s(samples: Option<u64>, step: Nanos) -> Option<f64> {
    samples.filter(|_| step > Nanos::ZERO).map(|samples| samples as f64 / ms(step) * 1e3)
}

/// Time of the kernels of one name in a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelTime {
    /// The kernel, copy or memset.
    pub name: String,
    /// Number per step.
    pub count: usize,
    /// Total time, milliseconds.
    pub device_ms: f64,
}

impl KernelTime {
    pub(super) fn new(cost: &KernelCost) -> KernelTime {
        KernelTime { name: cost.name.clone(), count: cost.count, device_ms: ms(cost.device) }
    }
}

/// The steps of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// Method by which they were found: `marked`, `repeated`, or `whole` where the whole trace is taken for one.
    pub source: &'static str,
    /// Number of steps.
    pub count: usize,
}

impl Steps {
    /// Counts the steps of a graph.
    #[must_use]
    pub fn from_graph(graph: &StepGraph) -> Steps {
        let source = match graph.step_source {
            StepSource::Marked => "marked",
            StepSource::Repeated => "repeated",
            StepSource::Whole => "whole",
        };
        Steps { source, count: graph.steps.len() }
    }
}
