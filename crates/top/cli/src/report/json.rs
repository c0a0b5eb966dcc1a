//! What all answers share on the wire.

use serde::{Serialize, Serializer};
use steptime::trace::Nanos;

/// Version of every answer; raised when a key changes its meaning.
pub const SCHEMA: u32 = 1;

/// Writes pairs as an object that keeps their order.
pub fn as_object<K: Serialize, V: Serialize, S: Serializer>(
    pairs: &[(K, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// Milliseconds.
pub fn ms(time: Nanos) -> f64 {
    time.as_millis()
}

/// What kernels of one name take in a step.
#[derive(Debug, Clone, Serialize)]
pub struct Kernel {
    /// The kernel, copy or memset.
    pub name: String,
    /// How many a step.
    pub count: usize,
    /// Their time.
    pub device_ms: f64,
}

/// The steps of a recording.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Steps {
    /// How they were found.
    pub source: &'static str,
    /// How many there are.
    pub count: usize,
}

impl Steps {
    /// Of a graph.
    pub fn of(graph: &steptime::graph::StepGraph) -> Steps {
        use steptime::graph::StepSource;
        let source = match graph.step_source {
            StepSource::Marked => "marked",
            StepSource::Repeated => "repeated",
            StepSource::Whole => "whole",
        };
        Steps { source, count: graph.steps.len() }
    }
}
