//! The kernels of one query.

use serde::Serialize;
use serde_json::Value;
use steptime_cost::device::Estimate;
use steptime_trace::Nanos;

/// The kernels of one query, or the reason why it has no answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelsReport {
    /// Id given by the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// Reason why the query failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Unknown keys of the query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Kernels that its ops launch, in order of execution.
    pub kernels: Vec<Kernel>,
    /// Total time, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_us: Option<f64>,
}

/// A kernel that one op launches itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kernel {
    /// The op.
    pub op: String,
    /// The kernel's family.
    pub family: &'static str,
    /// Its time, microseconds.
    pub time_us: f64,
    /// The 90 % interval of its time, microseconds.
    pub interval_us: [f64; 2],
    /// Source of its time.
    pub source: &'static str,
    /// Whether it is outside of the range that the model was fitted on.
    pub extrapolated: bool,
}

impl KernelsReport {
    /// Collects the kernels of a query.
    pub fn new(id: Option<Value>, ignored: Vec<String>, kernels: impl Iterator<Item = Kernel>) -> Self {
        let kernels: Vec<Kernel> = kernels.collect();
        // Starts at zero: the sum of an empty list would be -0.
        let total = kernels.iter().fold(0.0, |sum, kernel| sum + kernel.time_us);
        KernelsReport { id, error: None, ignored, kernels, total_us: Some(total) }
    }

    /// A query that could not be answered.
    #[must_use]
    pub fn failed(id: Option<Value>, error: String) -> Self {
        KernelsReport { id, error: Some(error), ..KernelsReport::default() }
    }
}

impl Kernel {
    /// Converts an estimate; `known` is whether the op has a family.
    #[must_use]
    pub fn new(op: &str, family: &'static str, estimate: &Estimate, known: bool) -> Kernel {
        Kernel {
            op: op.to_owned(),
            family,
            time_us: estimate.time.as_micros(),
            interval_us: estimate.interval().map(Nanos::as_micros),
            source: if known { estimate.source.name() } else { "fallback" },
            extrapolated: estimate.extrapolated,
        }
    }
}
