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
use steptime_step::export::Export;
use steptime_step::{self as edit, Diff, Scheduled};
use steptime_trace::Nanos;

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
    /// What runs before a CUDA graph captures some of it; `None` where none does.
    pub uncaptured: Option<Scheduled>,
    /// Samples of the step before and after, where the recording says how many it has or the change does.
    pub samples: [Option<u64>; 2],
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
    if predicted.step <= Nanos::ZERO {
        return Err(Error::NothingLeft { path: recorded.path.clone() });
    }
    let after = Prediction {
        slowness: base.slowness,
        doubts: costed.doubts(base, &edited, predicted.step),
        ..predicted
    };
    let after = after.with_peak(costed.peak, base.spec.as_ref()).widened();
    let shares = device.shares;
    let Edited { audits, step, scheduled, captured, .. } = edited;
    let diff = Diff::between(&base.step, &step);
    let samples = recorded.batch();
    let samples = [samples, change.rules.iter().fold(samples, |samples, rule| rule.samples(samples))];
    Ok(WhatIf {
        before,
        after,
        audits,
        diff,
        step,
        scheduled,
        uncaptured: captured.map(|(flat, _)| flat),
        samples,
        shares,
    })
}

impl WhatIf {
    /// The step after the change, to be written as a picture, for scripts, or as an execution trace: `recorded` is the step
    /// that was changed, read with the arguments of its ops.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    /// use steptime::edit::export::{dot, execution, json};
    /// use steptime::rewrite::ResizeBatch;
    /// use steptime::trace::Options;
    ///
    /// let path = format!("{examples}/dlrm_default_2048");
    /// let step = steptime::Step::open_with(path.as_ref(), &Default::default(), &Options::default())?;
    /// let answer = step.predict().what_if(&[&ResizeBatch::to(8192)])?;
    /// let export = answer.export(&step);
    /// let mut out = Vec::new();
    /// execution::write(&mut out, &export)?; // `steptime predict` reads it again
    /// dot::write(&mut out, &export)?;
    /// json::write(&mut out, &export)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn export<'s>(&'s self, recorded: &'s Step) -> Export<'s> {
        Export {
            name: &recorded.name,
            step: &self.step,
            scheduled: self.uncaptured.as_ref().unwrap_or(&self.scheduled),
            trace: recorded.arguments.execution(),
        }
    }
}

/// How lookups are distributed and which settings hold, where kernels come from a profile; else the usual.
fn settings(kernels: &Kernels<'_>) -> (Indices, Settings) {
    match kernels {
        Kernels::Measured => (Indices::default(), Settings::default()),
        Kernels::Device { indices, settings, .. } => (indices.clone(), *settings),
    }
}
