//! Replays of recordings with the profiler's cost left in.
use steptime_predict::{SelfCheck, Step, replay_doubt, uncertainty};

use super::doubts::DoubtEntry;
use super::shared::{SCHEMA, Steps, ms};
use serde::Serialize;

/// A replay compared with its recording. Times are in milliseconds, errors are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayEntry {
    /// Median period as recorded, milliseconds; for a single step its span.
    pub recorded_ms: f64,
    /// Simulated time of the typical step, milliseconds.
    pub typical_ms: f64,
    /// Relative error of the typical step.
    pub error: f64,
    /// Relative error of every recorded step, each simulated with its own times.
    pub each_error: f64,
    /// Device active time of a step as recorded, milliseconds.
    pub active_recorded_ms: f64,
    /// Device active time of the simulated typical step, milliseconds.
    pub active_typical_ms: f64,
    /// Relative error of the active time.
    pub active_error: f64,
    /// Whether a single step was recorded.
    pub single_step: bool,
}

impl ReplayEntry {
    /// Converts a self-check.
    #[must_use]
    pub fn new(check: &SelfCheck) -> ReplayEntry {
        ReplayEntry {
            recorded_ms: ms(check.recorded),
            typical_ms: ms(check.typical),
            error: check.error(),
            each_error: check.each_error,
            active_recorded_ms: ms(check.active_recorded),
            active_typical_ms: ms(check.active_typical),
            active_error: check.active_error(),
            single_step: check.single,
        }
    }
}

/// The answer of `validate --replay-only`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `validate`.
    pub command: &'static str,
    /// One row per recording.
    pub rows: Vec<ReplayRow>,
    /// Scores over all rows.
    pub summary: Summary,
}

/// A recording with its replay, or the reason why it has none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayRow {
    /// The recording: its folder or file.
    pub name: String,
    /// Number of steps.
    pub steps: usize,
    /// Method by which they were found, as [`Steps::source`]; `none` where the recording could not be read.
    pub step_source: &'static str,
    /// The replay, where the recording has times.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayEntry>,
    /// Doubt about the recording that follows from the replay.
    pub doubt: Option<DoubtEntry>,
    /// Reason why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl ReplayRow {
    /// Makes the row of a recording that was read.
    #[must_use]
    pub fn new(name: String, step: &Step) -> ReplayRow {
        let graph = &step.graph;
        let steps = Steps::from_graph(graph);
        let check = if step.arguments.is_derived() { None } else { SelfCheck::replay(graph) };
        let doubt = check.as_ref().and_then(|check| replay_doubt(graph, check));
        ReplayRow {
            name,
            steps: steps.count,
            step_source: steps.source,
            replay: check.as_ref().map(ReplayEntry::new),
            doubt: doubt.as_ref().map(DoubtEntry::new),
            failed: None,
        }
    }

    /// Makes the row of a recording that could not be read.
    #[must_use]
    pub fn failed(name: String, why: String) -> ReplayRow {
        ReplayRow { name, steps: 0, step_source: "none", replay: None, doubt: None, failed: Some(why) }
    }
}

/// Scores over all recordings; `median` and `within_1_percent` only over those with several steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// All recordings.
    pub recordings: usize,
    /// Recordings with several steps.
    pub several_steps: usize,
    /// Median absolute error of the typical step.
    pub median: f64,
    /// Number of recordings within one per cent.
    pub within_1_percent: usize,
    /// Number of recordings whose error is above the limit for a doubt.
    pub beyond: usize,
    /// Number of those without a doubt.
    pub silent: usize,
}

impl ReplayReport {
    /// Summarises rows.
    #[must_use]
    pub fn new(rows: Vec<ReplayRow>) -> ReplayReport {
        let several = |row: &&ReplayRow| row.replay.as_ref().is_some_and(|r| !r.single_step);
        let mut errors: Vec<f64> =
            rows.iter().filter(several).filter_map(|r| Some(r.replay.as_ref()?.error.abs())).collect();
        errors.sort_by(f64::total_cmp);
        let beyond = |row: &&ReplayRow| {
            row.replay.as_ref().is_some_and(|r| r.error.abs() > uncertainty().doubts.replay.threshold)
        };
        let summary = Summary {
            recordings: rows.len(),
            several_steps: errors.len(),
            median: middle(&errors),
            within_1_percent: errors.iter().filter(|e| **e <= 0.01).count(),
            beyond: rows.iter().filter(beyond).count(),
            silent: rows.iter().filter(beyond).filter(|row| row.doubt.is_none()).count(),
        };
        ReplayReport { schema: SCHEMA, command: "validate", rows, summary }
    }
}

fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}
