//! Recordings replayed with the profiler's cost left in, on the wire.

use serde::Serialize;
use steptime::SelfCheck;

use super::json::{SCHEMA, ms};
use super::json_predict::DoubtJson;

/// A recording's replay beside the recording. Times in milliseconds, errors are fractions.
#[derive(Debug, Serialize)]
pub struct ReplayJson {
    /// Median period as recorded; of a single step its span.
    pub recorded_ms: f64,
    /// The typical step, simulated.
    pub typical_ms: f64,
    /// Of the typical step.
    pub error: f64,
    /// Of every recorded step simulated with its own times.
    pub each_error: f64,
    pub active_recorded_ms: f64,
    pub active_typical_ms: f64,
    pub active_error: f64,
    pub single_step: bool,
}

impl ReplayJson {
    /// Puts a replay into words.
    pub fn new(check: &SelfCheck) -> ReplayJson {
        ReplayJson {
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
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    pub rows: Vec<RowJson>,
    pub summary: Summary,
}

/// One recording: its replay, or why there is none.
#[derive(Debug, Serialize)]
pub struct RowJson {
    pub name: String,
    pub steps: usize,
    pub step_source: &'static str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayJson>,
    pub doubt: Option<DoubtJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Over the recordings of several steps.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub recordings: usize,
    pub several_steps: usize,
    /// Median absolute error of the typical step.
    pub median: f64,
    /// How many lie within one per cent.
    pub within_1_percent: usize,
    /// How many are off by more than is let pass.
    pub beyond: usize,
    /// Of these, those that do not say so.
    pub silent: usize,
}

impl Answer {
    /// Puts rows together.
    pub fn new(rows: Vec<RowJson>) -> Answer {
        let several = |row: &&RowJson| row.replay.as_ref().is_some_and(|r| !r.single_step);
        let mut errors: Vec<f64> =
            rows.iter().filter(several).filter_map(|r| Some(r.replay.as_ref()?.error.abs())).collect();
        errors.sort_by(f64::total_cmp);
        let beyond =
            |row: &&RowJson| row.replay.as_ref().is_some_and(|r| r.error.abs() > steptime::REPLAY_SAID);
        let summary = Summary {
            recordings: rows.len(),
            several_steps: errors.len(),
            median: middle(&errors),
            within_1_percent: errors.iter().filter(|e| **e <= 0.01).count(),
            beyond: rows.iter().filter(beyond).count(),
            silent: rows.iter().filter(beyond).filter(|row| row.doubt.is_none()).count(),
        };
        Answer { schema: SCHEMA, command: "validate", rows, summary }
    }
}

fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}
