//! Points of a grid of changes.

use serde::Serialize;
use steptime_predict::{GridAnswer, Step};

use super::shared::{SCHEMA, ms, samples_per_s};

/// The numbers of one point.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GridRow {
    /// Index of the point in the grid.
    pub point: u64,
    /// Time from one step to the next, milliseconds; `None` where the change does not apply.
    pub step_ms: Option<f64>,
    /// 90 % interval of the step time, milliseconds.
    pub interval_ms: Option<[f64; 2]>,
    /// Device active time of the step, milliseconds.
    pub active_ms: Option<f64>,
    /// Peak device memory of the step's tensors, megabytes.
    pub peak_mb: Option<f64>,
    /// Whether the GPU has room for that with a tenth of its memory left free; `None` where either is unknown.
    pub fits: Option<bool>,
    /// Samples per second; `None` where the batch is unknown.
    pub samples_per_s: Option<f64>,
    /// Reason why the change does not apply.
    pub error: Option<String>,
    /// Doubts about the point.
    pub doubts: Vec<String>,
}

impl GridRow {
    /// Makes a row from an answer. `batch` is the number of samples of the changed step, where known.
    #[must_use]
    pub fn new(point: u64, answer: &GridAnswer, batch: Option<u64>) -> GridRow {
        let outcome = match answer {
            Ok(outcome) => outcome,
            Err(error) => return GridRow { point, error: Some(error.to_string()), ..GridRow::default() },
        };
        GridRow {
            point,
            step_ms: Some(ms(outcome.step)),
            interval_ms: Some(outcome.interval.map(ms)),
            active_ms: Some(ms(outcome.active)),
            peak_mb: outcome.peak.map(|peak| peak.total() as f64 / 1e6),
            fits: outcome.fits,
            samples_per_s: samples_per_s(batch, outcome.step),
            error: None,
            doubts: outcome.doubts.iter().map(|doubt| doubt.text.clone()).collect(),
        }
    }
}

/// Result of a grid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `sweep`.
    pub command: &'static str,
    /// The input, as given.
    pub input: String,
    /// The recording: its folder or file.
    pub name: String,
    /// File that its points were written to.
    pub output: String,
    /// Number of points of this shard.
    pub points: usize,
    /// Number of points kept from an earlier run.
    pub resumed: usize,
    /// Number of points whose change does not apply.
    pub not_applicable: usize,
    /// Number of points that do not fit their GPU's memory.
    pub does_not_fit: usize,
    /// Points with the most samples per second, or with the shortest steps where the batch is unknown; points that do not fit are last.
    pub best: Vec<GridBest>,
    /// For each GPU the point of the largest batch that fits, the best of several; empty where the grid has one batch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<GridBest>,
    /// Title of the step. Not in the JSON.
    #[serde(skip)]
    pub title: String,
}

/// A point that is better than most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridBest {
    /// The values of its keys.
    #[serde(serialize_with = "super::shared::as_object")]
    pub keys: Vec<(String, String)>,
    /// Its numbers.
    pub row: GridRow,
}

/// Number of points shown.
const SHOWN: usize = 5;

/// Value of a key at a point.
fn value<'b>(point: &'b GridBest, key: &str) -> Option<&'b str> {
    point.keys.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
}

/// For each GPU the point of the largest batch, the first of several; `fitting` are the points that fit, best first.
fn largest(fitting: impl Iterator<Item = GridBest>) -> Vec<GridBest> {
    let batch = |point: &GridBest| value(point, "batch").and_then(|batch| batch.parse::<u64>().ok());
    let mut found: Vec<GridBest> = Vec::new();
    for point in fitting.filter(|point| batch(point).is_some()) {
        match found.iter_mut().find(|known| value(known, "device") == value(&point, "device")) {
            Some(known) if batch(known) < batch(&point) => *known = point,
            Some(_) => {}
            None => found.push(point),
        }
    }
    found
}

impl GridReport {
    /// Makes the answer. `keys` returns the values of a point's keys.
    #[must_use]
    pub fn new(
        step: &Step,
        output: String,
        rows: &[GridRow],
        resumed: usize,
        keys: impl Fn(u64) -> Vec<(String, String)>,
    ) -> GridReport {
        let mut best: Vec<&GridRow> = rows.iter().filter(|row| row.step_ms.is_some()).collect();
        let rate = |row: &GridRow| {
            row.samples_per_s.or(row.step_ms.map(|ms| 1.0 / ms.max(f64::MIN_POSITIVE))).unwrap_or_default()
        };
        let outside = |row: &GridRow| row.fits == Some(false);
        best.sort_by(|a, b| {
            outside(a).cmp(&outside(b)).then(rate(b).total_cmp(&rate(a))).then(a.point.cmp(&b.point))
        });
        let point = |row: &&GridRow| GridBest { keys: keys(row.point), row: (*row).clone() };
        let largest = largest(best.iter().filter(|row| row.fits == Some(true)).map(point));
        let shown = best.iter().take(SHOWN).map(point).collect();
        GridReport {
            schema: SCHEMA,
            command: "sweep",
            input: step.input.display().to_string(),
            name: step.name.clone(),
            output,
            points: rows.len(),
            resumed,
            not_applicable: rows.iter().filter(|row| row.error.is_some()).count(),
            does_not_fit: rows.iter().filter(|row| outside(row)).count(),
            best: shown,
            largest,
            title: step.title(),
        }
    }
}
