//! Contents of an input.

mod build;
mod measured;

use serde::Serialize;
use steptime_trace::Notes;

use super::coverage::GraphCoverage;
use super::execution::ExecutionReport;
use super::job::JobRecordingReport;
use super::overheads::OverheadEntry;
use super::shared::{KernelTime, Steps};

/// Contents of an input. `timing` is absent where there is only an execution trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectReport {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// `inspect`.
    pub command: &'static str,
    /// The input, as given.
    pub input: String,
    /// The recording shown: its folder or file.
    pub name: String,
    /// Its title, as [`steptime_predict::Step::title`]. Not in the JSON.
    #[serde(skip)]
    pub title: String,
    /// Its rank, where known.
    pub rank: Option<u32>,
    /// All recordings of the input, one per rank.
    pub ranks: Vec<Rank>,
    /// Joint work of the ranks, where they are of one job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobRecordingReport>,
    /// Reason why their collectives do not match; the first of the warnings. Not in the JSON.
    #[serde(skip)]
    pub not_one_job: Option<String>,
    /// The GPU recorded on.
    pub device: Option<String>,
    /// The model, from meta.json.
    pub model: Option<String>,
    /// Samples a step, from meta.json.
    pub batch: Option<u64>,
    /// PyTorch's version, from meta.json.
    pub torch: Option<String>,
    /// The un-profiled step, from meta.json, milliseconds.
    pub measured_step_ms: Option<f64>,
    /// The devices that the trace describes.
    pub devices: Vec<Device>,
    /// The steps, where there is a graph.
    pub steps: Option<Steps>,
    /// Median time from step to step, milliseconds, the profiler included.
    pub period_ms: Option<f64>,
    /// Median device active time of a step, milliseconds.
    pub active_ms: Option<f64>,
    /// Host threads of a step.
    pub threads: Vec<Thread>,
    /// Device streams of a step.
    pub streams: Vec<Stream>,
    /// Top-level ops by name, longest on the device first.
    pub ops: Vec<Op>,
    /// Kernels by name, longest first.
    pub kernels: Vec<KernelTime>,
    /// T1 to T5 and hand-offs, the profiler's cost taken off.
    pub overheads: Vec<OverheadEntry>,
    /// Counts of joined events.
    pub coverage: Option<GraphCoverage>,
    /// The execution trace, where there is one.
    pub execution: Option<ExecutionReport>,
    /// Repairs and omissions of the reader.
    pub notes: Vec<Note>,
    /// Files that do not hold a trace.
    pub ignored: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// One rank of several.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rank {
    /// Its number, where known.
    pub rank: Option<u32>,
    /// Its folder or file.
    pub name: String,
    /// The GPU recorded on.
    pub device: Option<String>,
    /// Its steps.
    pub steps: Option<Steps>,
    /// Median time from step to step, milliseconds.
    pub period_ms: Option<f64>,
    /// Median device active time of a step, milliseconds.
    pub active_ms: Option<f64>,
    /// Ops on the host, in all steps.
    pub host_ops: usize,
    /// Device activities, in all steps.
    pub activities: usize,
    /// Nodes of its execution trace.
    pub nodes: usize,
}

/// A device of the host, as the trace describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    /// Its number.
    pub id: u32,
    /// The device's own name.
    pub name: String,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Compute capability, such as `9.0`.
    pub compute_capability: Option<String>,
    /// Number of multiprocessors.
    pub multiprocessors: Option<u32>,
    /// Second-level cache, bytes.
    pub l2_bytes: Option<u64>,
}

/// A host thread of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Thread {
    /// The operating system's id.
    pub tid: i64,
    /// `main`, `autograd` or `other`.
    pub role: &'static str,
    /// Ops of a step, at every level.
    pub ops: usize,
    /// Calls of a step.
    pub calls: usize,
    /// Time of a step inside any op or call, milliseconds.
    pub busy_ms: f64,
}

/// A device stream of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stream {
    /// The device's number.
    pub device: u32,
    /// The stream's number.
    pub stream: i64,
    /// Kernels a step.
    pub kernels: usize,
    /// Copies a step.
    pub copies: usize,
    /// Memsets a step.
    pub memsets: usize,
    /// Total time, milliseconds.
    pub busy_ms: f64,
}

/// Top-level ops of one name in a step, as measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Op {
    /// Their name.
    pub name: String,
    /// Number per step.
    pub count: usize,
    /// Total host time, milliseconds.
    pub host_ms: f64,
    /// Time of the device activities that they launch, milliseconds.
    pub device_ms: f64,
}

/// A repair or an omission of the reader in a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Note {
    /// `timing`, `shaped` or `execution`.
    pub of: &'static str,
    /// Description in words.
    pub what: String,
    /// Number of times.
    pub count: u64,
    /// Whether the file was repaired.
    pub repaired: bool,
}

/// The notes of one file.
fn notes(of: &'static str, notes: &Notes) -> Vec<Note> {
    let mut left = notes.repairs();
    let note = |(what, count): (String, u64)| {
        // Repairs come first, and add up to their total.
        let repaired = left > 0;
        left = left.saturating_sub(count);
        Note { of, what, count, repaired }
    };
    notes.iter().map(note).collect()
}
