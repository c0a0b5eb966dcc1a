//! What if the step were another: rules change it, what was recorded carries over, the rest is priced anew.

mod device_side;
mod host_side;
mod parameters;

use steptime_aten::Settings;
use steptime_cost::PricedGraph;
use steptime_cost::device::Indices;
use steptime_graph::TiVec;
use steptime_rewrite::{self as rewrite, Audit, Facts, Rule};
use steptime_step::{self as edit, Diff, Scheduled};

use self::device_side::DeviceSide;
use crate::doubt::Doubt;
use crate::error::Error;
use crate::memory;
use crate::predict::{Prediction, host_side as base_host};
use crate::sources::{Host, Kernels};
use crate::step::Step;
use steptime_cost::Process;

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

/// Changes a step by rules, and predicts it before and after.
pub(crate) fn what_if(
    recorded: &Step,
    pricing: &Pricing<'_>,
    change: &Change<'_>,
    before: Prediction,
) -> Result<WhatIf, Error> {
    let base = recorded.arguments.editable(&recorded.graph);
    let mut step = base.clone();
    let facts = Facts { ops: &recorded.ops, batch: recorded.batch() };
    let audits = rewrite::apply(&mut step, change.rules, &facts)
        .map_err(|source| Error::Rewrite { path: recorded.path.clone(), source })?;
    let flat = edit::schedule(&step, &base, &recorded.graph, &recorded.ops);
    let device = DeviceSide::of(recorded, pricing, &step, &flat)?;
    let peak = memory::of_changed(recorded, &pricing.kernels, &step, &flat);
    let (scheduled, device) = if step.ops.iter().any(|op| op.captured) {
        let replayed = edit::captured(&step, &flat);
        let device = device.through(&replayed.carried);
        let carried = replayed.carried.over(&flat.carried);
        (Scheduled { carried, ..replayed }, device)
    } else {
        (flat, device)
    };
    let (costs, slowness) = base_host(recorded, pricing.process, &pricing.host);
    let mut host = host_side::of(recorded, pricing, &scheduled, &costs, slowness)?;
    if let Some(times) = change.host_times {
        host_side::slow(&mut host, times)?;
    }
    let priced = PricedGraph { graph: &scheduled.graph, host, durations: device.durations };
    let mut after =
        Prediction { slowness, ..Prediction::of_priced(&priced, device.spread, before.asked.clone()) };
    // What the changed step needs of memory is said of itself.
    after.doubts = before.doubts.iter().filter(|doubt| doubt.kind != "memory").cloned().collect();
    let by_rule = change.rules.iter().filter_map(|rule| rule.doubt());
    after.doubts.extend(by_rule.map(|(text, above)| Doubt {
        kind: "rule",
        text: text.to_owned(),
        below: 0.0,
        above,
        no_estimate: false,
    }));
    let spec = memory::spec(recorded, &pricing.kernels);
    after = after.with_peak(peak, spec.as_ref()).widened();
    let diff = Diff::between(&base, &step);
    Ok(WhatIf { before, after, audits, diff, step, scheduled, shares: device.shares })
}

/// The calls of a scheduled step, op by op.
fn calls(
    step: &edit::Step,
    scheduled: &Scheduled,
) -> TiVec<steptime_graph::OpId, Option<steptime_aten::OpCall>> {
    scheduled.ops.iter().map(|&op| step.call(op)).collect()
}

/// How lookups are distributed and which settings hold, where kernels come from a profile; else the usual.
fn settings(kernels: &Kernels<'_>) -> (Indices, Settings) {
    match kernels {
        Kernels::Measured => (Indices::default(), Settings::default()),
        Kernels::Device { indices, settings, .. } => (indices.clone(), *settings),
    }
}
