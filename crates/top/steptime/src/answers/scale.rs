//! How the step of a model's job changes with the number of its GPUs.

use serde::Serialize;

use super::shared::{SCHEMA, ms};
use crate::shard::Placement;

/// A model on several numbers of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaled {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `scale`.
    pub command: &'static str,
    /// The description, as it was named.
    pub input: String,
    /// What to call it.
    pub name: String,
    /// The GPU.
    pub device: String,
    /// Whether each GPU keeps its number of samples; else all share those of the description.
    pub weak: bool,
    /// One row a number of GPUs.
    pub rows: Vec<ScaledRow>,
    /// What speaks against the predictions, each once.
    pub doubts: Vec<String>,
}

/// A model on some GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScaledRow {
    /// How many.
    pub gpus: u32,
    /// In how many machines; none where that is not said.
    pub nodes: Option<u32>,
    /// Samples a step, of all together.
    pub batch: u64,
    /// The step, milliseconds.
    pub step_ms: f64,
    /// Its interval, milliseconds.
    pub interval_ms: [f64; 2],
    /// Samples a second.
    pub samples_per_s: f64,
    /// Samples a second of each GPU, relative to the first row.
    pub efficiency: f64,
    /// Data on its way between GPUs while nothing else runs, on the GPU where that is longest: milliseconds.
    pub exposed_ms: f64,
    /// What a thousand million samples cost at the price given.
    pub cost: Option<f64>,
}

impl Scaled {
    /// The answer; `price` is that of a GPU for an hour.
    #[must_use]
    pub fn of(placements: &[Placement], weak: bool, price: Option<f64>) -> Scaled {
        let first = placements.first();
        let mut doubts: Vec<String> = Vec::new();
        for doubt in placements.iter().flat_map(|placement| &placement.predicted.doubts) {
            if !doubts.contains(&doubt.text) {
                doubts.push(doubt.text.clone());
            }
        }
        let mut rows: Vec<ScaledRow> = placements.iter().map(|placement| row(placement, price)).collect();
        let each = |row: &ScaledRow| row.samples_per_s / f64::from(row.gpus.max(1));
        let best = rows.first().map_or(1.0, each);
        rows.iter_mut().for_each(|row| row.efficiency = if best > 0.0 { each(row) / best } else { 0.0 });
        Scaled {
            schema: SCHEMA,
            command: "scale",
            input: first.map_or_else(String::new, |of| of.ranks.path.display().to_string()),
            name: first.map_or_else(String::new, |of| of.ranks.title()),
            device: first
                .and_then(|of| of.predicted.asked.device.as_ref())
                .map_or_else(String::new, |device| device.name.clone()),
            weak,
            rows,
            doubts,
        }
    }
}

fn row(placement: &Placement, price: Option<f64>) -> ScaledRow {
    let (gpus, batch) = (placement.model.gpus(), placement.model.batch());
    let step_ms = ms(placement.predicted.step);
    let samples_per_s = if step_ms > 0.0 { batch as f64 / step_ms * 1e3 } else { 0.0 };
    let exposed = placement.predicted.ranks.iter().map(|rank| rank.parts.moves).max();
    let hours = |samples: f64| samples / samples_per_s / 3600.0;
    ScaledRow {
        gpus,
        nodes: placement.model.nodes(),
        batch,
        step_ms,
        interval_ms: placement.predicted.interval.map(ms),
        samples_per_s,
        efficiency: 1.0,
        exposed_ms: exposed.map_or(0.0, ms),
        cost: price.filter(|_| samples_per_s > 0.0).map(|price| price * f64::from(gpus) * hours(1e9)),
    }
}
