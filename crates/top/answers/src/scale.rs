//! Step time of a job by number of GPUs.

use serde::Serialize;
use steptime_predict::{Prediction, Step, StepOnGpus, shard::Placement};
use steptime_trace::Nanos;

use super::doubts::{Caveats, DoubtEntry, host_doubt, worst_first};
use super::shared::{SCHEMA, ms, samples_per_s};

/// A step on several numbers of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScaleReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `scale`.
    pub command: &'static str,
    /// The input, as given.
    pub input: String,
    /// Title of the job or the step.
    pub name: String,
    /// Name of the GPU.
    pub device: String,
    /// Whether each GPU keeps its number of samples; else all GPUs share the samples of one step.
    pub weak: bool,
    /// One row per number of GPUs.
    pub rows: Vec<ScaleRow>,
    /// Assumptions and doubts, each once, worst first.
    pub doubts: Vec<String>,
}

/// A step on one number of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScaleRow {
    /// Number of GPUs.
    pub gpus: u32,
    /// Number of nodes; `None` where not given.
    pub nodes: Option<u32>,
    /// Samples per step of all GPUs together.
    pub batch: u64,
    /// The step, milliseconds.
    pub step_ms: f64,
    /// Its interval, milliseconds.
    pub interval_ms: [f64; 2],
    /// Samples per second.
    pub samples_per_s: f64,
    /// Samples per second and GPU, relative to the first row.
    pub efficiency: f64,
    /// Time in which data is on its way between GPUs and nothing else runs, on the GPU where it is longest, milliseconds.
    pub exposed_ms: f64,
    /// Cost of 10^9 samples at the given price.
    pub cost: Option<f64>,
}

impl ScaleReport {
    /// Makes the answer for a described model; `price` is the price per GPU-hour.
    #[must_use]
    pub fn from_placements(placements: &[Placement], weak: bool, price: Option<f64>) -> ScaleReport {
        let first = placements.first();
        let doubts =
            placements.iter().flat_map(|placement| placement.predicted.doubts.iter().map(DoubtEntry::new));
        let assumed = first.and_then(|of| host_doubt(&of.predicted.asked));
        ScaleReport {
            schema: SCHEMA,
            command: "scale",
            input: first.map_or_else(String::new, |of| of.ranks.path.display().to_string()),
            name: first.map_or_else(String::new, |of| of.ranks.title()),
            device: first
                .and_then(|of| of.predicted.asked.device.as_ref())
                .map_or_else(String::new, |device| device.name.clone()),
            weak,
            rows: rows(placements.iter().map(|placement| row(placement, price))),
            doubts: distinct_texts(doubts.chain(assumed).collect()),
        }
    }

    /// Makes the answer for a step on several numbers of GPUs; `before` is its prediction on one.
    #[must_use]
    pub fn from_step(
        step: &Step,
        before: &Prediction,
        on: &[StepOnGpus],
        weak: bool,
        price: Option<f64>,
    ) -> ScaleReport {
        let named = before.asked.device.as_ref().map(|device| device.name.clone());
        let said = Caveats::from_prediction(before, step).doubts;
        let doubts = on.iter().flat_map(|on| on.doubts.iter().map(DoubtEntry::new));
        let row = |on: &StepOnGpus| {
            ScaleRow::new(
                [on.gpus, on.nodes.unwrap_or_default()],
                on.batch,
                on.step,
                on.interval,
                on.exposed,
                price,
            )
        };
        ScaleReport {
            schema: SCHEMA,
            command: "scale",
            input: step.input.display().to_string(),
            name: step.title(),
            device: named.or_else(|| step.graph.device.clone()).unwrap_or_default(),
            weak,
            rows: rows(on.iter().map(row)),
            doubts: distinct_texts(said.into_iter().chain(doubts).collect()),
        }
    }
}

/// Fills in the efficiency of each row, relative to the first.
fn rows(rows: impl Iterator<Item = ScaleRow>) -> Vec<ScaleRow> {
    let mut rows: Vec<ScaleRow> = rows.collect();
    let each = |row: &ScaleRow| row.samples_per_s / f64::from(row.gpus.max(1));
    let best = rows.first().map_or(1.0, each);
    rows.iter_mut().for_each(|row| row.efficiency = if best > 0.0 { each(row) / best } else { 0.0 });
    rows
}

/// Texts of doubts, each once, worst first.
fn distinct_texts(doubts: Vec<DoubtEntry>) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for doubt in worst_first(doubts) {
        if !texts.contains(&doubt.text) {
            texts.push(doubt.text);
        }
    }
    texts
}

fn row(placement: &Placement, price: Option<f64>) -> ScaleRow {
    let (model, predicted) = (&placement.model, &placement.predicted);
    let exposed = predicted.ranks.iter().map(|rank| rank.parts.moves).max().unwrap_or_default();
    let gpus = [model.gpus(), model.nodes().unwrap_or_default()];
    ScaleRow::new(gpus, model.batch(), predicted.step, predicted.interval, exposed, price)
}

impl ScaleRow {
    /// Makes a row; 0 nodes mean that their number was not given.
    fn new(
        [gpus, nodes]: [u32; 2],
        batch: u64,
        step: Nanos,
        interval: [Nanos; 2],
        exposed: Nanos,
        price: Option<f64>,
    ) -> ScaleRow {
        let samples_per_s = samples_per_s(Some(batch), step).unwrap_or_default();
        let hours = |samples: f64| samples / samples_per_s / 3600.0;
        ScaleRow {
            gpus,
            nodes: (nodes > 0).then_some(nodes),
            batch,
            step_ms: ms(step),
            interval_ms: interval.map(ms),
            samples_per_s,
            efficiency: 1.0,
            exposed_ms: ms(exposed),
            cost: price.filter(|_| samples_per_s > 0.0).map(|price| price * f64::from(gpus) * hours(1e9)),
        }
    }
}
