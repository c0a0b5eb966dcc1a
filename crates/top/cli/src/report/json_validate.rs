//! The answer of `validate`, on the wire.

use serde::Serialize;
use steptime::device::{self, FamilyScore};
use steptime::{Row, Score, Validation};

use super::json::SCHEMA;
use super::json_device::ModelCoverageJson;
use super::json_predict::LEVEL;

/// Predictions beside what was measured. Times are in milliseconds, errors and shares are fractions.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    pub host: String,
    pub kernels: String,
    /// Whether steps were predicted from their execution traces alone.
    pub lone: bool,
    pub rows: Vec<RowJson>,
    pub summary: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ModelCoverageJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<FamilyJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<FamilyJson>,
    pub warnings: Vec<String>,
}

/// What was asked for.
#[derive(Debug)]
pub struct Asked {
    pub host: String,
    pub kernels: String,
    pub lone: bool,
}

/// One recording.
#[derive(Debug, Serialize)]
pub struct RowJson {
    pub name: String,
    pub measured_ms: f64,
    pub predicted_ms: f64,
    pub error: f64,
    pub interval_ms: [f64; 2],
    pub inside: bool,
    /// The architecture it is of: with leave-one-out nothing of it was fitted on.
    pub architecture: String,
    /// Whether the host profile was fitted on it.
    pub in_sample: bool,
    pub paper_ms: f64,
    /// With the published cost of the profiler.
    pub paper_published_ms: f64,
    pub kernel_sum_ms: f64,
    pub active_measured_ms: f64,
    pub active_predicted_ms: f64,
    pub profiled_ms: Option<f64>,
    pub replayed_ms: Option<f64>,
    pub replay_error: Option<f64>,
    pub idle_share_profiled: Option<f64>,
    pub idle_share_replayed: Option<f64>,
    pub host_slowness: Option<f64>,
}

/// Scores over all recordings.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub simulate: ScoreJson,
    pub paper: ScoreJson,
    pub paper_published: ScoreJson,
    pub kernel_sum: ScoreJson,
    pub active: ScoreJson,
    pub replay: ScoreJson,
    pub interval: Interval,
}

/// Absolute relative errors: geometric mean, mean, ninetieth percentile, worst.
#[derive(Debug, Serialize)]
pub struct ScoreJson {
    pub gmae: f64,
    pub mean: f64,
    pub p90: f64,
    pub max: f64,
}

/// Kernel times of one family, or of the ops of one name: predicted against measured, op by op.
#[derive(Debug, Serialize)]
pub struct FamilyJson {
    pub family: String,
    pub count: usize,
    /// Share of the device time of all recordings together.
    pub time_share: f64,
    /// The largest share of device time in any one recording.
    pub max_share: f64,
    pub gmae: f64,
    pub mean: f64,
    /// Of signed errors.
    pub std: f64,
    /// Mean of absolute errors, weighted by measured time.
    pub time_weighted: f64,
    /// Share of ops inside their 90 % interval.
    pub inside: f64,
}

/// How often the interval holds what was measured.
#[derive(Debug, Serialize)]
pub struct Interval {
    /// How often it should.
    pub level: f64,
    /// How often it does.
    pub inside: f64,
}

impl Answer {
    /// Puts a validation into words.
    pub fn new(asked: Asked, validation: &Validation, repairs: Vec<String>) -> Answer {
        let Asked { host, kernels, lone } = asked;
        let mut warnings = validation.warnings.clone();
        warnings.extend(repairs);
        Answer {
            schema: SCHEMA,
            command: "validate",
            host,
            kernels,
            lone,
            rows: validation.rows.iter().map(RowJson::new).collect(),
            summary: Summary {
                simulate: ScoreJson::new(&validation.simulate),
                paper: ScoreJson::new(&validation.paper),
                paper_published: ScoreJson::new(&validation.paper_published),
                kernel_sum: ScoreJson::new(&validation.kernel_sum),
                active: ScoreJson::new(&validation.active),
                replay: ScoreJson::new(&validation.replay),
                interval: Interval { level: LEVEL, inside: validation.inside },
            },
            coverage: ModelCoverageJson::over(validation),
            families: validation.families.iter().map(FamilyJson::new).collect(),
            ops: device::by(&validation.ops, |op| &op.op).iter().map(FamilyJson::new).collect(),
            warnings,
        }
    }
}

impl RowJson {
    fn new(row: &Row) -> RowJson {
        let profiled = row.replay.map(|replay| replay.measured.as_millis());
        let replayed = row.replay.map(|replay| replay.simulated.as_millis());
        let idle = |active: f64, step: f64| (1.0 - active / step).max(0.0);
        RowJson {
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

impl FamilyJson {
    fn new(score: &FamilyScore) -> FamilyJson {
        FamilyJson {
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

impl ScoreJson {
    fn new(score: &Score) -> ScoreJson {
        ScoreJson { gmae: score.gmae, mean: score.mean, p90: score.p90, max: score.max }
    }
}
