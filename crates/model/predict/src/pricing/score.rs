//! Errors of predicted kernel times, by family.

use std::collections::BTreeMap;

use steptime_cost::device::Source;
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::launch::Launch;
use super::price::DevicePrices;
use crate::score::Score;

/// Times of one op of one recording: the sum of its kernels, predicted and measured, in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct OpError {
    /// Index of the recording in the validation.
    pub recording: usize,
    /// The op's name; empty for launches outside of ops.
    pub op: String,
    /// The family of its kernels.
    pub family: &'static str,
    /// Predicted.
    pub predicted_us: f64,
    /// Measured.
    pub measured_us: f64,
    /// The 90 % interval.
    pub interval_us: [f64; 2],
    /// Source of the prediction.
    pub source: Source,
}

/// The errors of one family over all recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilyScore {
    /// The family.
    pub family: String,
    /// Ops.
    pub count: usize,
    /// Its share of the measured device time of all recordings together.
    pub time_share: f64,
    /// The largest share of device time it has in any one recording.
    pub max_share: f64,
    /// Geometric mean and mean of absolute relative errors, and others.
    pub score: Score,
    /// Standard deviation of signed relative errors.
    pub std: f64,
    /// Mean of absolute relative errors, weighted by measured time.
    pub time_weighted: f64,
    /// Share of ops whose measured time is inside the 90 % interval.
    pub inside: f64,
}

impl OpError {
    /// Returns the measured ops of one recording.
    pub fn from_launches(
        recording: usize,
        graph: &StepGraph,
        launches: &[Launch],
        prices: &DevicePrices,
    ) -> Vec<OpError> {
        let rows = launches.iter().zip(&prices.estimates);
        let error = |(launch, estimate): (&Launch, &steptime_cost::device::Estimate)| {
            let measured = launch.measured(graph).filter(|time| time.0 > 0)?;
            if estimate.source == Source::Measured {
                return None; // nothing was predicted
            }
            Some(OpError {
                recording,
                op: launch.op.map_or_else(String::new, |op| graph.op_name(op).to_owned()),
                family: launch.call.kernel.family(),
                predicted_us: estimate.time.as_micros(),
                measured_us: measured.as_micros(),
                interval_us: estimate.interval().map(Nanos::as_micros),
                source: estimate.source,
            })
        };
        rows.filter_map(error).collect()
    }

    /// Signed relative error.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted_us / self.measured_us - 1.0
    }

    fn inside(&self) -> bool {
        self.interval_us[0] <= self.measured_us && self.measured_us <= self.interval_us[1]
    }
}

/// Scores each family, the one with the most device time first.
#[must_use]
pub fn families(errors: &[OpError]) -> Vec<FamilyScore> {
    by(errors, |error| error.family)
}

/// Scores groups of ops by a name, the one with the most device time first.
#[must_use]
pub fn by<'a>(errors: &'a [OpError], name: impl Fn(&'a OpError) -> &'a str) -> Vec<FamilyScore> {
    let mut groups: BTreeMap<&str, Vec<&OpError>> = BTreeMap::new();
    let mut of_recording: BTreeMap<usize, f64> = BTreeMap::new();
    for error in errors {
        groups.entry(name(error)).or_default().push(error);
        *of_recording.entry(error.recording).or_default() += error.measured_us;
    }
    let total: f64 = of_recording.values().sum();
    let mut scores: Vec<FamilyScore> =
        groups.into_iter().map(|(name, group)| score(name, &group, total, &of_recording)).collect();
    scores.sort_by(|a, b| b.time_share.total_cmp(&a.time_share));
    scores
}

fn score(name: &str, group: &[&OpError], total: f64, of_recording: &BTreeMap<usize, f64>) -> FamilyScore {
    let count = group.len() as f64;
    let time: f64 = group.iter().map(|error| error.measured_us).sum();
    let mut shares: BTreeMap<usize, f64> = BTreeMap::new();
    for error in group {
        *shares.entry(error.recording).or_default() += error.measured_us / of_recording[&error.recording];
    }
    let mean = group.iter().map(|error| error.error()).sum::<f64>() / count;
    let variance = group.iter().map(|error| (error.error() - mean).powi(2)).sum::<f64>() / count;
    let weighted: f64 = group.iter().map(|error| error.error().abs() * error.measured_us).sum();
    FamilyScore {
        family: name.to_owned(),
        count: group.len(),
        time_share: time / total,
        max_share: shares.into_values().fold(0.0, f64::max),
        score: Score::from_errors(group.iter().map(|error| error.error())),
        std: variance.sqrt(),
        time_weighted: weighted / time,
        inside: group.iter().filter(|error| error.inside()).count() as f64 / count,
    }
}
