//! A step before and after a change.

use serde::Serialize;
use steptime_predict::{INTERVAL_LEVEL, Prediction, Step, WhatIf};
use steptime_sim::Idle;
use steptime_trace::Nanos;

use super::doubts::{Caveats, DoubtEntry};
use super::shared::{PeakMemory, SCHEMA, as_object, ms, samples_per_s};

/// A step before and after a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatIfReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `whatif`.
    pub command: &'static str,
    /// The input, as given.
    pub input: String,
    /// The recording: its folder or file.
    pub name: String,
    /// The GPU predicted for.
    pub device: Option<String>,
    /// Source of the host's times.
    pub host: String,
    /// Source of the kernels' times: `measured`, or the device as given.
    pub kernels: String,
    /// The unchanged step.
    pub before: Side,
    /// The step with the change.
    pub after: Side,
    /// Speedup of the step by the change.
    pub speedup: f64,
    /// Effects of each rule.
    pub transforms: Vec<Transform>,
    /// Causes of the difference.
    pub why: Vec<String>,
    /// Sources of device time after the change, as shares of it.
    pub kernel_times: KernelTimes,
    /// The probability of the intervals.
    pub interval_level: f64,
    /// Assumptions and doubts, worst first.
    pub doubts: Vec<DoubtEntry>,
    /// Repairs, assumptions and guesses, in words; all are among the doubts too.
    pub warnings: Vec<String>,
    /// Its title. Not in the JSON.
    #[serde(skip)]
    pub title: String,
}

/// One side of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Time from one step to the next, milliseconds.
    pub step_ms: f64,
    /// Interval of the step time at the answer's level, milliseconds.
    pub interval_ms: [f64; 2],
    /// Device active time of the step, milliseconds.
    pub active_ms: f64,
    /// Device idle time of the step, milliseconds by cause.
    #[serde(serialize_with = "as_object")]
    pub idle_ms: Vec<(&'static str, f64)>,
    /// Peak device memory of the step's tensors, megabytes by kind.
    pub peak_mb: Option<PeakMemory>,
    /// Whether the GPU has room for that; `None` where either is unknown.
    pub fits: Option<bool>,
    /// Samples per second, where the batch is known.
    pub samples_per_s: Option<f64>,
}

/// Effects of a rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transform {
    /// The rule.
    pub name: &'static str,
    /// The changes it made, with reasons.
    pub why: Vec<String>,
    /// Number of ops removed.
    pub removed: usize,
    /// Number of ops inserted.
    pub inserted: usize,
    /// Number of ops with other arguments or settings.
    pub changed: usize,
}

/// Sources of device time, as shares of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KernelTimes {
    /// Share measured and unchanged.
    pub measured: f64,
    /// Share measured and scaled by a model's ratio for the change.
    pub scaled: f64,
    /// Share from a model alone.
    pub modelled: f64,
}

impl Side {
    /// Makes one side from a prediction and the number of samples of its step.
    pub(super) fn new(prediction: &Prediction, samples: Option<u64>) -> Side {
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

impl WhatIfReport {
    /// Makes the answer. `step` is the step that was changed.
    #[must_use]
    pub fn from_what_if(what_if: &WhatIf, step: &Step) -> WhatIfReport {
        let asked = &what_if.before.asked;
        let named = asked.device.as_ref().map(|device| device.name.clone());
        let transform = |audit: &steptime_rewrite::Audit| {
            let [removed, inserted, changed] = audit.counts;
            Transform { name: audit.rule, why: audit.why.clone(), removed, inserted, changed }
        };
        let [measured, scaled, modelled] = what_if.shares;
        let Caveats { doubts, warnings } =
            Caveats::collect(asked, step, Some(&what_if.before), Some(&what_if.after));
        WhatIfReport {
            schema: SCHEMA,
            command: "whatif",
            input: step.input.display().to_string(),
            name: step.name.clone(),
            device: named.or_else(|| step.device_name()),
            host: asked.host.clone(),
            kernels: asked.kernels.clone(),
            before: Side::new(&what_if.before, what_if.samples[0]),
            after: Side::new(&what_if.after, what_if.samples[1]),
            speedup: what_if.before.step.0 as f64 / (what_if.after.step.0 as f64).max(1.0),
            transforms: what_if.audits.iter().map(transform).collect(),
            why: why(&what_if.before, &what_if.after),
            kernel_times: KernelTimes { measured, scaled, modelled },
            interval_level: INTERVAL_LEVEL,
            doubts,
            warnings,
            title: step.title(),
        }
    }
}

/// Smallest difference, as a share of the step, that is reported.
const WORTH: f64 = 0.005;

/// Causes of the difference of two predictions: device active time, and idle time by cause, largest first.
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
