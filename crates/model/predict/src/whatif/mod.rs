//! Predictions of changed steps: rules change the step, recorded times carry over, and the rest is priced.

mod added_host_time;
mod changes;
mod device_side;
mod host_side;
mod modified_step;
mod outcome;
mod parameters;
mod priced_step;
mod shared_work;
mod stream_demand;

use steptime_aten::Settings;
use steptime_cost::Process;
use steptime_cost::device::Indices;
use steptime_rewrite::{Audit, Rule};
use steptime_step::export::Export;
use steptime_step::{Diff, ScheduledStep};
use steptime_trace::Nanos;

pub use self::changes::{Changes, Fuse, OperatorLibrary, Precision};
pub use self::modified_step::ModifiedStep;
pub use self::outcome::Outcome;
pub(crate) use self::priced_step::PricedStep;
pub(crate) use self::shared_work::Base;
use crate::error::Error;
use crate::predict::{KnownParts, Prediction};
use crate::step::Step;
use crate::time_sources::{Host, Kernels};

/// A step before and after a change.
#[derive(Debug, Clone)]
pub struct WhatIf {
    /// The step as recorded.
    pub before: Prediction,
    /// The step with the change.
    pub after: Prediction,
    /// Effects of each rule, with reasons.
    pub audits: Vec<Audit>,
    /// Ops in which the two steps differ.
    pub diff: Diff,
    /// The step after the change, as a graph.
    pub step: steptime_step::StepIr,
    /// Schedule of the changed step.
    pub scheduled: ScheduledStep,
    /// Schedule before a CUDA graph captures some of it; `None` where none does.
    pub uncaptured: Option<ScheduledStep>,
    /// Samples of the step before and after, where the recording or the change gives their number.
    pub samples: [Option<u64>; 2],
    /// Shares of device time after the change: measured, measured and scaled by a model, and priced by a model
    /// alone.
    pub shares: [f64; 3],
}

/// A change of a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Change<'r> {
    /// Rules, applied in order.
    pub rules: &'r [&'r dyn Rule],
    /// Factor on all host times: 0.5 for a host twice as fast.
    pub host_times: Option<f64>,
}

/// Sources of prices of a changed step.
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
    let edited = ModifiedStep::apply(recorded, base, change.rules, &pricing.kernels)?;
    let costed = PricedStep::price(recorded, pricing, base, &edited)?;
    let priced = costed.priced(&edited, change.host_times)?;
    let before = base.before.clone();
    let known = KnownParts {
        spread: costed.device.spread,
        slowness: base.slowness,
        device: None,
        peak: costed.peak,
        spec: base.spec.as_ref(),
        asked: before.asked.clone(),
    };
    let after = Prediction::new(&priced, known, |found| costed.doubts(base, &edited, found.step));
    if after.step <= Nanos::ZERO {
        return Err(Error::NothingLeft { path: recorded.path.clone() });
    }
    let shares = costed.device.shares;
    let ModifiedStep { audits, step, scheduled, captured, .. } = edited;
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
    /// The step after the change, for export as a picture, for scripts, or as an execution trace. `recorded` is the step
    /// before the change, read with the arguments of its ops.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    /// use steptime_step::export::{dot, execution, json};
    /// use steptime_rewrite::ResizeBatch;
    /// use steptime_trace::Options;
    ///
    /// let path = format!("{examples}/dlrm_default_2048");
    /// let step = steptime_predict::Step::open_with(path.as_ref(), &Default::default(), &Options::default())?;
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

/// Distribution of lookups and settings, where kernels come from a profile; else the defaults.
fn settings(kernels: &Kernels<'_>) -> (Indices, Settings) {
    match kernels {
        Kernels::Measured => (Indices::default(), Settings::default()),
        Kernels::Device { indices, settings, .. } => (indices.clone(), *settings),
    }
}
