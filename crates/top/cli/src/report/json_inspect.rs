//! The answer of `inspect`, on the wire.

use serde::Serialize;
use steptime::trace::Notes;

use super::json::{Kernel, Steps};
use super::json_coverage::CoverageJson;
use super::json_execution::ExecutionJson;
use super::json_overheads::OverheadJson;

/// What is in an input. `timing` is absent where there is only an execution trace.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    pub input: String,
    pub name: String,
    pub rank: Option<u32>,
    pub ranks: Vec<Rank>,
    pub device: Option<String>,
    pub model: Option<String>,
    pub batch: Option<u64>,
    pub torch: Option<String>,
    /// The un-profiled step, from meta.json.
    pub measured_step_ms: Option<f64>,
    pub devices: Vec<Device>,
    pub steps: Option<Steps>,
    pub period_ms: Option<f64>,
    pub active_ms: Option<f64>,
    pub threads: Vec<Thread>,
    pub streams: Vec<Stream>,
    pub ops: Vec<Op>,
    pub kernels: Vec<Kernel>,
    pub overheads: Vec<OverheadJson>,
    pub coverage: Option<CoverageJson>,
    pub execution: Option<ExecutionJson>,
    pub notes: Vec<NoteJson>,
    pub ignored: Vec<String>,
    pub warnings: Vec<String>,
}

/// One rank of several.
#[derive(Debug, Serialize)]
pub struct Rank {
    pub rank: Option<u32>,
    pub name: String,
    pub device: Option<String>,
    pub steps: Option<Steps>,
    pub period_ms: Option<f64>,
    pub active_ms: Option<f64>,
    pub host_ops: usize,
    pub activities: usize,
    pub nodes: usize,
}

/// A device of the host, as the trace describes it.
#[derive(Debug, Serialize)]
pub struct Device {
    pub id: u32,
    pub name: String,
    pub memory_bytes: Option<u64>,
    pub compute_capability: Option<String>,
    pub multiprocessors: Option<u32>,
    pub l2_bytes: Option<u64>,
}

/// A host thread of a step.
#[derive(Debug, Serialize)]
pub struct Thread {
    /// The operating system's id.
    pub tid: i64,
    /// `main`, `autograd` or `other`.
    pub role: &'static str,
    /// Ops of a step, at every level.
    pub ops: usize,
    /// Calls of a step.
    pub calls: usize,
    /// Time of a step inside any op or call.
    pub busy_ms: f64,
}

/// A device stream of a step.
#[derive(Debug, Serialize)]
pub struct Stream {
    pub device: u32,
    pub stream: i64,
    pub kernels: usize,
    pub copies: usize,
    pub memsets: usize,
    pub busy_ms: f64,
}

/// Top-level ops of one name in a step, as measured.
#[derive(Debug, Serialize)]
pub struct Op {
    pub name: String,
    pub count: usize,
    pub host_ms: f64,
    pub device_ms: f64,
}

/// What the reader repaired or left out of a file.
#[derive(Debug, Serialize)]
pub struct NoteJson {
    /// `timing`, `shaped` or `execution`.
    pub of: &'static str,
    /// In words.
    pub what: String,
    /// How often.
    pub count: u64,
    /// Whether it mended the file.
    pub repaired: bool,
}

/// The notes of one file.
pub fn notes(of: &'static str, notes: &Notes) -> Vec<NoteJson> {
    let mut left = notes.repairs();
    let note = |(what, count): (String, u64)| {
        // Repairs come first, and add up to their total.
        let repaired = left > 0;
        left = left.saturating_sub(count);
        NoteJson { of, what, count, repaired }
    };
    notes.iter().map(note).collect()
}
