//! What several answers hold.

use serde::{Serialize, Serializer};
use steptime_graph::{StepGraph, StepSource};
use steptime_sim::breakdown::KernelCost;
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

/// Milliseconds.
pub(super) fn ms(time: Nanos) -> f64 {
    time.as_millis()
}

/// What kernels of one name take in a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelTime {
    /// The kernel, copy or memset.
    pub name: String,
    /// How many a step.
    pub count: usize,
    /// Their time together, milliseconds.
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
    /// How they were found: `marked`, `repeated`, or `whole` where the whole trace is taken for one.
    pub source: &'static str,
    /// How many there are.
    pub count: usize,
}

impl Steps {
    /// Of a graph.
    #[must_use]
    pub fn of(graph: &StepGraph) -> Steps {
        let source = match graph.step_source {
            StepSource::Marked => "marked",
            StepSource::Repeated => "repeated",
            StepSource::Whole => "whole",
        };
        Steps { source, count: graph.steps.len() }
    }
}
