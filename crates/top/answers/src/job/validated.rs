//! Predicted jobs, compared with measurements.

use serde::Serialize;
use steptime_predict::{Error, INTERVAL_LEVEL, RankSet, Score};

use super::super::shared::{SCHEMA, ms};
use super::super::validate::{Errors, Interval};

/// Predicted jobs, compared with measurements. Times are in milliseconds, errors and shares are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobValidationReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `validate`.
    pub command: &'static str,
    /// One row per job.
    pub jobs: Vec<JobValidationRow>,
    /// Errors of the simulation of all ranks.
    pub simulate: Errors,
    /// Errors of the slowest rank alone, without waiting for others.
    pub slowest_alone: Errors,
    /// Errors of the first rank alone, its waiting counted as work.
    pub first_rank: Errors,
    /// Errors of the replay of all ranks' profiled steps.
    pub replay: Errors,
    /// Frequency with which intervals hold the measured step.
    pub interval: Interval,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobValidationRow {
    /// Its folder.
    pub name: String,
    /// Number of recorded ranks.
    pub ranks: usize,
    /// The un-profiled step: the mean of the ranks' medians.
    pub measured_ms: f64,
    /// The predicted step.
    pub predicted_ms: f64,
    /// Signed relative error.
    pub error: f64,
    /// The 90 % interval.
    pub interval_ms: [f64; 2],
    /// Whether the interval holds the measured step.
    pub inside: bool,
    /// The slowest rank alone, without waiting for others.
    pub slowest_alone_ms: f64,
    /// The first rank alone, its waiting counted as work.
    pub first_rank_ms: f64,
    /// Relative error of the replay of the recorded steps.
    pub replay_error: Option<f64>,
}

impl JobValidationRow {
    /// Predicts a job and compares it with the measurement.
    ///
    /// # Errors
    /// Fails where a rank has no measured step time, or cannot be predicted.
    pub fn predict(ranks: &RankSet) -> Result<JobValidationRow, Error> {
        let truths: Result<Vec<f64>, Error> =
            ranks.steps.iter().map(|step| step.truth_ms("validated")).collect();
        let truths = truths?;
        let measured_ms = truths.iter().sum::<f64>() / truths.len().max(1) as f64;
        let predicted = ranks.predict()?;
        let first = ranks.steps.first().map(|step| step.predict().simulate()).transpose()?;
        let (step, interval_ms) = (ms(predicted.step), predicted.interval.map(ms));
        Ok(JobValidationRow {
            name: ranks.title(),
            ranks: ranks.steps.len(),
            measured_ms,
            predicted_ms: step,
            error: step / measured_ms - 1.0,
            interval_ms,
            inside: interval_ms[0] <= measured_ms && measured_ms <= interval_ms[1],
            slowest_alone_ms: predicted.ranks.iter().map(|rank| ms(rank.alone)).fold(0.0, f64::max),
            first_rank_ms: first.map_or(0.0, |first| ms(first.step)),
            replay_error: predicted.replay.as_ref().map(steptime_sim::Replay::error),
        })
    }
}

impl JobValidationReport {
    /// Scores rows.
    #[must_use]
    pub fn from_rows(jobs: Vec<JobValidationRow>) -> JobValidationReport {
        let against = |of: fn(&JobValidationRow) -> f64| {
            Errors::new(&Score::from_errors(jobs.iter().map(|row| of(row) / row.measured_ms - 1.0)))
        };
        let inside = jobs.iter().filter(|row| row.inside).count() as f64 / jobs.len().max(1) as f64;
        JobValidationReport {
            schema: SCHEMA,
            command: "validate",
            simulate: against(|row| row.predicted_ms),
            slowest_alone: against(|row| row.slowest_alone_ms),
            first_rank: against(|row| row.first_rank_ms),
            replay: Errors::new(&Score::from_errors(jobs.iter().filter_map(|row| row.replay_error))),
            interval: Interval { level: INTERVAL_LEVEL, inside },
            jobs,
        }
    }
}
