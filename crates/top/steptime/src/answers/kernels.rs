//! The kernels of one query.

use serde::Serialize;
use serde_json::Value;
use steptime_cost::device::Estimate;
use steptime_trace::Nanos;

/// The kernels of one query, or why it has no answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelsPredicted {
    /// What the query called itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Keys of the query that mean nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// What its ops launch, in the order in which it runs.
    pub kernels: Vec<Kernel>,
    /// All together, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_us: Option<f64>,
}

/// What one op launches by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kernel {
    /// The op.
    pub op: String,
    /// The kernel's family.
    pub family: &'static str,
    /// How long it takes, microseconds.
    pub time_us: f64,
    /// The 90 % interval, microseconds.
    pub interval_us: [f64; 2],
    /// Where the time came from.
    pub source: &'static str,
    /// Whether it is unlike all that the model was fitted on.
    pub extrapolated: bool,
}

impl KernelsPredicted {
    /// The kernels that a query stands for.
    pub fn of(id: Option<Value>, ignored: Vec<String>, kernels: impl Iterator<Item = Kernel>) -> Self {
        let kernels: Vec<Kernel> = kernels.collect();
        // From zero on: the sum of nothing would be -0.
        let total = kernels.iter().fold(0.0, |sum, kernel| sum + kernel.time_us);
        KernelsPredicted { id, error: None, ignored, kernels, total_us: Some(total) }
    }

    /// A query that could not be answered.
    #[must_use]
    pub fn failed(id: Option<Value>, error: String) -> Self {
        KernelsPredicted { id, error: Some(error), ..KernelsPredicted::default() }
    }
}

impl Kernel {
    /// An estimate; `known` is whether the op has a family.
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
