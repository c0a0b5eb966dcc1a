//! The answers of `kernels predict`, on the wire and as lines.

use serde::Serialize;
use serde_json::Value;
use steptime::cost::device::Estimate;
use steptime::trace::Nanos;

use crate::output::name;

/// The kernels of one query. Times are in microseconds.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Keys of the query that mean nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    pub kernels: Vec<Kernel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_us: Option<f64>,
}

/// What one op launches by itself.
#[derive(Debug, Serialize)]
pub struct Kernel {
    pub op: String,
    pub family: &'static str,
    pub time_us: f64,
    pub interval_us: [f64; 2],
    pub source: &'static str,
    pub extrapolated: bool,
}

impl Answer {
    /// The kernels that a query stands for.
    pub fn of(id: Option<Value>, ignored: Vec<String>, kernels: impl Iterator<Item = Kernel>) -> Answer {
        let kernels: Vec<Kernel> = kernels.collect();
        // From zero on: the sum of nothing would be -0.
        let total = kernels.iter().fold(0.0, |sum, kernel| sum + kernel.time_us);
        Answer { id, error: None, ignored, kernels, total_us: Some(total) }
    }

    /// A query that could not be answered.
    pub fn failed(id: Option<Value>, error: String) -> Answer {
        Answer { id, error: Some(error), ..Answer::default() }
    }

    /// As lines for a terminal.
    pub fn text(&self) -> String {
        let mut text = name(self.error.as_deref().unwrap_or_default());
        for kernel in &self.kernels {
            let [low, high] = kernel.interval_us;
            text.push_str(&format!(
                "{:<40} {:<20} {:>10.2} us   {low:.2} to {high:.2}   {}{}\n",
                name(&kernel.op),
                kernel.family,
                kernel.time_us,
                kernel.source,
                if kernel.extrapolated { ", out of range" } else { "" },
            ));
        }
        if !self.ignored.is_empty() {
            text.push_str(&format!("ignored: {}\n", name(&self.ignored.join(", "))));
        }
        if let Some(total) = self.total_us {
            text.push_str(&format!("{:<61} {total:>10.2} us", "total"));
        }
        text
    }
}

impl Kernel {
    /// An estimate in words.
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
