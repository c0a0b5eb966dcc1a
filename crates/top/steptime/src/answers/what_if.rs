//! A step before and after a change.

use serde::Serialize;
use steptime_sim::Idle;
use steptime_trace::Nanos;

use super::doubts::{DoubtSaid, Said};
use super::shared::{PeakMemory, SCHEMA, as_object, ms, samples_per_s};
use crate::predict::{INTERVAL_LEVEL, Prediction};
use crate::step::Step;
use crate::whatif::WhatIf;

/// A step before and after a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `whatif`.
    pub command: &'static str,
    /// The input, as it was named.
    pub input: String,
    /// The recording: its folder or file.
    pub name: String,
    /// The GPU predicted for.
    pub device: Option<String>,
    /// Where the host's times come from.
    pub host: String,
    /// Where the kernels' times come from: `measured`, or the device as it was named.
    pub kernels: String,
    /// The step as it is.
    pub before: Side,
    /// The step with the change.
    pub after: Side,
    /// How many times as fast the step is after the change.
    pub speedup: f64,
    /// What each rule did.
    pub transforms: Vec<Transform>,
    /// Where the difference comes from.
    pub why: Vec<String>,
    /// Where device time after the change comes from, as shares of it.
    pub kernel_times: KernelTimes,
    /// The probability of the intervals.
    pub interval_level: f64,
    /// What it assumes and what speaks against it, the worst first.
    pub doubts: Vec<DoubtSaid>,
    /// What was repaired, assumed or guessed, in words; all of it is among the doubts too.
    pub warnings: Vec<String>,
    /// What to call it. Not in the JSON.
    #[serde(skip)]
    pub title: String,
}

/// One side of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// From one step to the next, milliseconds.
    pub step_ms: f64,
    /// Holds the step time with the probability that the answer says, milliseconds.
    pub interval_ms: [f64; 2],
    /// How long of the step the device works, milliseconds.
    pub active_ms: f64,
    /// How long it does not, milliseconds by cause.
    #[serde(serialize_with = "as_object")]
    pub idle_ms: Vec<(&'static str, f64)>,
    /// The most device memory that its tensors need at once, megabytes by kind.
    pub peak_mb: Option<PeakMemory>,
    /// Whether the GPU has room for that; `None` where either is not known.
    pub fits: Option<bool>,
    /// Samples a second, where the batch is known.
    pub samples_per_s: Option<f64>,
}

/// What a rule did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transform {
    /// The rule.
    pub name: &'static str,
    /// What it did and why.
    pub why: Vec<String>,
    /// How many ops it removed.
    pub removed: usize,
    /// How many it put in.
    pub inserted: usize,
    /// How many have other arguments or settings.
    pub changed: usize,
}

/// Where device time comes from, as shares of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KernelTimes {
    /// Measured, and as it was.
    pub measured: f64,
    /// Measured, times what a model says of the change.
    pub scaled: f64,
    /// A model's alone.
    pub modelled: f64,
}

impl Side {
    /// Of a prediction of a step of so many samples.
    pub(super) fn of(prediction: &Prediction, samples: Option<u64>) -> Side {
        Side {
            step_ms: ms(prediction.step),
            interval_ms: prediction.interval.map(ms),
            active_ms: ms(prediction.active),
            idle_ms: prediction.idle_by_cause.iter().map(|(cause, time)| (cause.key(), ms(time))).collect(),
            peak_mb: prediction.peak.as_ref().map(PeakMemory::new),
            fits: prediction.fits,
            samples_per_s: samples_per_s(samples, prediction.step),
        }
    }
}

impl WhatIf {
    /// The answer. `step` is the step that was changed.
    #[must_use]
    pub fn answer(&self, step: &Step) -> Changed {
        let asked = &self.before.asked;
        let named = asked.device.as_ref().map(|device| device.name.clone());
        let transform = |audit: &steptime_rewrite::Audit| {
            let [removed, inserted, changed] = audit.counts;
            Transform { name: audit.rule, why: audit.why.clone(), removed, inserted, changed }
        };
        let [measured, scaled, modelled] = self.shares;
        let Said { doubts, warnings } = Said::of(asked, step, Some(&self.before), Some(&self.after));
        Changed {
            schema: SCHEMA,
            command: "whatif",
            input: step.input.display().to_string(),
            name: step.name.clone(),
            device: named.or_else(|| step.graph.device.clone()),
            host: asked.host.clone(),
            kernels: asked.kernels.clone(),
            before: Side::of(&self.before, self.samples[0]),
            after: Side::of(&self.after, self.samples[1]),
            speedup: self.before.step.0 as f64 / (self.after.step.0 as f64).max(1.0),
            transforms: self.audits.iter().map(transform).collect(),
            why: why(&self.before, &self.after),
            kernel_times: KernelTimes { measured, scaled, modelled },
            interval_level: INTERVAL_LEVEL,
            doubts,
            warnings,
            title: step.title(),
        }
    }
}

/// A change of less than this, as a share of the step, is not worth a line.
const WORTH: f64 = 0.005;

/// Where the difference of two predictions comes from: device time, and idle time by cause, the largest first.
pub(super) fn why(before: &Prediction, after: &Prediction) -> Vec<String> {
    let mut parts: Vec<(String, Nanos, Nanos)> =
        vec![("device active".to_owned(), before.active, after.active)];
    let of = |idle: &Idle| idle.iter().collect::<Vec<_>>();
    for ((cause, was), (_, is)) in of(&before.idle_by_cause).into_iter().zip(of(&after.idle_by_cause)) {
        parts.push((format!("device idle: {}", cause.name()), was, is));
    }
    let least = before.step.0 as f64 * WORTH;
    parts.retain(|(_, was, is)| (is.0 - was.0).abs() as f64 >= least);
    parts.sort_by_key(|(_, was, is)| -(is.0 - was.0).abs());
    let line = |(what, was, is): (String, Nanos, Nanos)| {
        format!("{what}: {:.3} to {:.3} ms ({:+.3})", ms(was), ms(is), ms(is - was))
    };
    parts.into_iter().map(line).collect()
}
