//! Predictions compared with measurements.

use serde::Serialize;
use steptime_predict::{
    INTERVAL_LEVEL, Row, Score, Validation,
    pricing::{self, FamilyScore, ModelCoverage},
};

use super::device_time_sources::ModelShares;
use super::shared::SCHEMA;

/// Predictions compared with measurements. Times are in milliseconds, errors and shares are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValidationReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `validate`.
    pub command: &'static str,
    /// Source of the host's times.
    pub host: String,
    /// Source of the kernels' times: `measured`, or the device.
    pub kernels: String,
    /// Whether steps were predicted from their execution traces alone.
    pub lone: bool,
    /// One row per recording.
    pub rows: Vec<Recording>,
    /// Scores over all of them.
    pub summary: Summary,
    /// Sources of predicted device time, where kernels were priced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ModelShares>,
    /// Errors of kernel times by family, the one with the most device time first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<FamilyErrors>,
    /// Errors of kernel times by op.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<FamilyErrors>,
    /// Warnings about the recordings.
    pub warnings: Vec<String>,
}

/// Settings of a validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationSettings {
    /// Source of the host's times: `own`, `default`, `leave-one-out`, or a file.
    pub host: String,
    /// Source of the kernels' times: `measured`, or the device.
    pub kernels: String,
    /// Whether steps are predicted from their execution traces alone.
    pub lone: bool,
}

/// One recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recording {
    /// Its folder or file.
    pub name: String,
    /// The un-profiled step.
    pub measured_ms: f64,
    /// The predicted step.
    pub predicted_ms: f64,
    /// Signed relative error.
    pub error: f64,
    /// The 90 % interval.
    pub interval_ms: [f64; 2],
    /// Whether the interval holds the measured step.
    pub inside: bool,
    /// Its architecture; with leave-one-out no recording of it was in the fitted data.
    pub architecture: String,
    /// Whether the host profile was fitted on it.
    pub in_sample: bool,
    /// Step by the published method.
    pub paper_ms: f64,
    /// Step by the published method, with the published cost of the profiler.
    pub paper_published_ms: f64,
    /// The plain sum of kernels.
    pub kernel_sum_ms: f64,
    /// Device active time, measured.
    pub active_measured_ms: f64,
    /// Device active time, predicted.
    pub active_predicted_ms: f64,
    /// The profiled step, as recorded.
    pub profiled_ms: Option<f64>,
    /// The profiled step as replayed, the profiler's cost left in.
    pub replayed_ms: Option<f64>,
    /// Relative error of the replay.
    pub replay_error: Option<f64>,
    /// Share of the profiled step in which the device is idle.
    pub idle_share_profiled: Option<f64>,
    /// Share of the replayed step in which the device is idle.
    pub idle_share_replayed: Option<f64>,
    /// The recording's own host gaps relative to those of the profile.
    pub host_slowness: Option<f64>,
}

/// Scores over all recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The simulation.
    pub simulate: Errors,
    /// The published method, with the profiler's cost as measured.
    pub paper: Errors,
    /// The published method, with the profiler's cost as published.
    pub paper_published: Errors,
    /// The plain sum of kernels.
    pub kernel_sum: Errors,
    /// Device active time.
    pub active: Errors,
    /// The replay of the profiled step.
    pub replay: Errors,
    /// Frequency with which intervals hold the measured step.
    pub interval: Interval,
}

/// Absolute relative errors: geometric mean, mean, ninetieth percentile, worst.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Errors {
    /// Geometric mean.
    pub gmae: f64,
    /// Mean.
    pub mean: f64,
    /// Ninetieth percentile.
    pub p90: f64,
    /// The worst.
    pub max: f64,
}

/// Errors of kernel times, op by op, of one family or of the ops of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyErrors {
    /// The family, or the op.
    pub family: String,
    /// Number of ops.
    pub count: usize,
    /// Share of the device time of all recordings together.
    pub time_share: f64,
    /// The largest share of device time in any one recording.
    pub max_share: f64,
    /// Geometric mean of absolute errors.
    pub gmae: f64,
    /// Mean of absolute errors.
    pub mean: f64,
    /// Standard deviation of signed errors.
    pub std: f64,
    /// Mean of absolute errors, weighted by measured time.
    pub time_weighted: f64,
    /// Share of ops inside their 90 % interval.
    pub inside: f64,
}

/// Frequency with which the interval holds the measured value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// Nominal frequency.
    pub level: f64,
    /// Actual frequency.
    pub inside: f64,
}

impl ValidationReport {
    /// Makes the answer.
    #[must_use]
    pub fn from_validation(validation: &Validation, asked: ValidationSettings) -> ValidationReport {
        let ValidationSettings { host, kernels, lone } = asked;
        ValidationReport {
            schema: SCHEMA,
            command: "validate",
            host,
            kernels,
            lone,
            rows: validation.rows.iter().map(Recording::new).collect(),
            summary: Summary {
                simulate: Errors::new(&validation.simulate),
                paper: Errors::new(&validation.paper),
                paper_published: Errors::new(&validation.paper_published),
                kernel_sum: Errors::new(&validation.kernel_sum),
                active: Errors::new(&validation.active),
                replay: Errors::new(&validation.replay),
                interval: Interval { level: INTERVAL_LEVEL, inside: validation.inside },
            },
            coverage: ModelShares::over(validation),
            families: validation.families.iter().map(FamilyErrors::new).collect(),
            ops: pricing::by(&validation.ops, |op| &op.op).iter().map(FamilyErrors::new).collect(),
            warnings: validation.warnings.clone(),
        }
    }
}

impl Recording {
    fn new(row: &Row) -> Recording {
        let profiled = row.replay.map(|replay| replay.measured.as_millis());
        let replayed = row.replay.map(|replay| replay.simulated.as_millis());
        let idle = |active: f64, step: f64| (1.0 - active / step).max(0.0);
        Recording {
            name: row.name.clone(),
            measured_ms: row.measured_ms,
            predicted_ms: row.predicted_ms,
            error: row.error(),
            interval_ms: row.interval_ms,
            inside: row.inside(),
            architecture: row.architecture.clone(),
            in_sample: row.in_sample,
            paper_ms: row.paper_ms,
            paper_published_ms: row.paper_published_ms,
            kernel_sum_ms: row.kernel_sum_ms,
            active_measured_ms: row.active_measured_ms,
            active_predicted_ms: row.active_predicted_ms,
            profiled_ms: profiled,
            replayed_ms: replayed,
            replay_error: profiled.zip(replayed).map(|(measured, simulated)| simulated / measured - 1.0),
            idle_share_profiled: row.replay.map(|r| idle(r.active.as_millis(), r.measured.as_millis())),
            idle_share_replayed: replayed.map(|step| idle(row.replay_active_ms, step)),
            host_slowness: row.slowness,
        }
    }
}

impl FamilyErrors {
    fn new(score: &FamilyScore) -> FamilyErrors {
        FamilyErrors {
            family: score.family.clone(),
            count: score.count,
            time_share: score.time_share,
            max_share: score.max_share,
            gmae: score.score.gmae,
            mean: score.score.mean,
            std: score.std,
            time_weighted: score.time_weighted,
            inside: score.inside,
        }
    }
}

impl Errors {
    pub(super) fn new(score: &Score) -> Errors {
        Errors { gmae: score.gmae, mean: score.mean, p90: score.p90, max: score.max }
    }
}

impl ModelShares {
    /// Shares over all recordings of a validation, by predicted device time; `None` where kernels were not priced.
    #[must_use]
    pub fn over(validation: &Validation) -> Option<ModelShares> {
        let mut sum = ModelCoverage::default();
        let mut total = 0.0;
        for row in &validation.rows {
            let coverage = row.coverage?;
            let weight = row.active_predicted_ms;
            total += weight;
            sum.fitted += weight * coverage.fitted;
            sum.transferred += weight * coverage.transferred;
            sum.analytic += weight * coverage.analytic;
            sum.measured += weight * coverage.measured;
            sum.scaled += weight * coverage.scaled;
            sum.fallback += weight * coverage.fallback;
            sum.unknown += weight * coverage.unknown;
            sum.extrapolated += weight * coverage.extrapolated;
        }
        let share = |part: f64| if total > 0.0 { part / total } else { 0.0 };
        Some(ModelShares {
            fitted: share(sum.fitted),
            transferred: share(sum.transferred),
            analytic: share(sum.analytic),
            measured: share(sum.measured),
            scaled: share(sum.scaled),
            fallback: share(sum.fallback),
            unknown: share(sum.unknown),
            extrapolated: share(sum.extrapolated),
        })
    }
}
