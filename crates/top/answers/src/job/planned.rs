//! Estimates of planners for recorded jobs, compared with measurements.

use serde::Serialize;
use steptime_predict::{
    Score,
    shard::{
        Placement, RecordedJob,
        torchrec::{cost, planned},
    },
};

use super::super::shared::{SCHEMA, ms};
use super::super::validate::Errors;

/// Estimates compared with measurements. Times are in milliseconds, errors and shares are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannerValidationReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `validate`.
    pub command: &'static str,
    /// Name of the planner.
    pub planner: &'static str,
    /// One row per job.
    pub jobs: Vec<PlannerRow>,
    /// Scores of this program, predicting from descriptions.
    pub described: RankingAccuracy,
    /// Scores of the planner.
    pub planned: RankingAccuracy,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannerRow {
    /// Its folder.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Number of recorded ranks.
    pub ranks: u32,
    /// The un-profiled step: the mean of the ranks' medians.
    pub measured_ms: f64,
    /// The step as predicted from its description.
    pub described_ms: f64,
    /// Its signed relative error.
    pub described_error: f64,
    /// Cost of its tables by the planner.
    pub planned_ms: f64,
    /// Signed relative error of that cost against the measured step.
    pub planned_error: f64,
}

/// Accuracy of a method and of its ranking of jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankingAccuracy {
    /// Its errors.
    pub errors: Errors,
    /// Spread of the ratio of two jobs: standard deviation of the logarithm of its error over all pairs. A common factor cancels.
    pub pair_spread: f64,
    /// Number of pairs of jobs that it puts in their measured order.
    pub in_order: usize,
    /// Number of all pairs.
    pub pairs: usize,
    /// Number of ordered pairs among jobs of one model and batch, which differ by placement or number of ranks.
    pub in_order_of_model: usize,
    /// Number of pairs of one model and batch.
    pub pairs_of_model: usize,
}

impl PlannerRow {
    /// Makes the row of a job and its predicted description.
    #[must_use]
    pub fn new(job: &RecordedJob, placement: &Placement) -> PlannerRow {
        let described_ms = ms(placement.predicted.step);
        let planned_ms = cost(&planned(&placement.model));
        PlannerRow {
            name: job.title(),
            model: format!("{} {}", job.model.as_deref().unwrap_or("-"), placement.model.batch()),
            ranks: job.ranks,
            measured_ms: job.measured_ms,
            described_ms,
            described_error: described_ms / job.measured_ms - 1.0,
            planned_ms,
            planned_error: planned_ms / job.measured_ms - 1.0,
        }
    }
}

impl PlannerValidationReport {
    /// Scores rows.
    #[must_use]
    pub fn from_rows(jobs: Vec<PlannerRow>) -> PlannerValidationReport {
        PlannerValidationReport {
            schema: SCHEMA,
            command: "validate",
            planner: "torchrec",
            described: RankingAccuracy::new(&jobs, |row| row.described_ms),
            planned: RankingAccuracy::new(&jobs, |row| row.planned_ms),
            jobs,
        }
    }
}

impl RankingAccuracy {
    fn new(jobs: &[PlannerRow], time: fn(&PlannerRow) -> f64) -> RankingAccuracy {
        let errors =
            Errors::new(&Score::from_errors(jobs.iter().map(|row| time(row) / row.measured_ms - 1.0)));
        let pairs: Vec<(&PlannerRow, &PlannerRow)> =
            jobs.iter().enumerate().flat_map(|(at, a)| jobs[at + 1..].iter().map(move |b| (a, b))).collect();
        let off = |(a, b): &(&PlannerRow, &PlannerRow)| {
            (time(a) / time(b) * b.measured_ms / a.measured_ms).ln().powi(2)
        };
        let right =
            |(a, b): &(&PlannerRow, &PlannerRow)| (time(a) - time(b)) * (a.measured_ms - b.measured_ms) > 0.0;
        let of_model = || pairs.iter().filter(|(a, b)| a.model == b.model);
        RankingAccuracy {
            errors,
            pair_spread: (pairs.iter().map(off).sum::<f64>() / pairs.len().max(1) as f64).sqrt(),
            in_order: pairs.iter().filter(|pair| right(pair)).count(),
            pairs: pairs.len(),
            in_order_of_model: of_model().filter(|pair| right(pair)).count(),
            pairs_of_model: of_model().count(),
        }
    }
}
