//! What if the step were another: rules change it, what was recorded carries over, the rest is priced anew.

mod base;
mod costed;
mod device_side;
mod edited;
mod host_side;
mod outcome;
mod parameters;
mod script;
mod sharing;

use steptime_aten::Settings;
use steptime_cost::Process;
use steptime_cost::device::Indices;
use steptime_rewrite::{Audit, Rule};
use steptime_step::{self as edit, Diff, Scheduled};

pub(crate) use self::base::Base;
pub(crate) use self::costed::Costed;
pub use self::edited::Edited;
pub use self::outcome::Outcome;
use crate::error::Error;
use crate::predict::Prediction;
use crate::sources::{Host, Kernels};
use crate::step::Step;

/// A step before and after a change.
#[derive(Debug, Clone)]
pub struct WhatIf {
    /// The step as it was recorded.
    pub before: Prediction,
    /// The step with the change.
    pub after: Prediction,
    /// What each rule did, and why.
    pub audits: Vec<Audit>,
    /// The ops in which the two differ.
    pub diff: Diff,
    /// The step after the change, as a graph.
    pub step: edit::Step,
    /// What runs then.
    pub scheduled: Scheduled,
    /// Share of device time after the change that was measured, that is measured and scaled by a model, and that a model
    /// alone prices.
    pub shares: [f64; 3],
}

/// What is to be changed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Change<'r> {
    /// Rules, applied in turn.
    pub rules: &'r [&'r dyn Rule],
    /// How many times as long the host takes for everything: 0.5 for one twice as fast.
    pub host_times: Option<f64>,
}

/// Whose kernels and host a changed step is priced by.
pub(crate) struct Pricing<'p> {
    pub host: Host<'p>,
    pub kernels: Kernels<'p>,
    pub process: Process,
}

/// Changes a step by rules, and predicts it.
pub(crate) fn what_if(
    recorded: &Step,
    pricing: &Pricing<'_>,
    change: &Change<'_>,
    base: &Base,
) -> Result<WhatIf, Error> {
    let edited = Edited::of(recorded, base, change.rules, &pricing.kernels)?;
    let costed = Costed::of(recorded, pricing, base, &edited)?;
    let priced = costed.priced(&edited, change.host_times)?;
    let (before, device) = (base.before.clone(), &costed.device);
    let predicted = Prediction::of_priced(&priced, device.spread, before.asked.clone());
    let after = Prediction {
        slowness: base.slowness,
        doubts: costed.doubts(base, &edited, predicted.step),
        ..predicted
    };
    let after = after.with_peak(costed.peak, base.spec.as_ref()).widened();
    let shares = device.shares;
    let Edited { audits, step, scheduled, .. } = edited;
    let diff = Diff::between(&base.step, &step);
    Ok(WhatIf { before, after, audits, diff, step, scheduled, shares })
}

/// How lookups are distributed and which settings hold, where kernels come from a profile; else the usual.
fn settings(kernels: &Kernels<'_>) -> (Indices, Settings) {
    match kernels {
        Kernels::Measured => (Indices::default(), Settings::default()),
        Kernels::Device { indices, settings, .. } => (indices.clone(), *settings),
    }
}
