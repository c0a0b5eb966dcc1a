//! Corrections of a family from a later sweep, on top of the earlier models.
//!
//! A stage corrects estimates only of kinds of calls that its sweep contained, and only within the range of sizes
//! of the sweep; all other calls keep their estimate and their interval.

use std::collections::BTreeMap;

use steptime_aten::KernelCall;
use steptime_trace::Nanos;

use super::context::{Context, Setting};
use super::estimate::{Estimate, Source};
use super::extrapolation::{TOLERATED, belief, excess, widening};
use super::family::Family;
use super::learn::conformal::Interval;
use super::learn::table::Table;
use super::learn::trees::Trees;
use super::spec::DeviceSpec;
use super::variant::variant;

/// Feature in front of a family's own: the logarithm of the estimate to correct, in nanoseconds.
pub const ESTIMATE: &str = "ln_estimate";

/// A correction of a family's estimates, and the width of its interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Trees for the logarithm of measured over the earlier estimate, over [`names`].
    pub trees: Trees,
    /// Interval of the corrected estimate.
    pub interval: Interval,
    /// Whether kernels inside recorded steps were among the rows.
    pub in_steps: bool,
    /// Usual range of the earlier models' addition to the logarithm of a time for being inside a step.
    pub by_step: [f64; 2],
    /// Kinds of calls in its sweep, by name.
    pub kinds: BTreeMap<String, Kind>,
}

/// Correction of one kind of calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// Share of the correction that is applied, 0 to 1: the best one on held-out cases.
    pub share: f32,
    /// Least and greatest value of every feature among the rows.
    pub ranges: Vec<[f32; 2]>,
}

/// Returns the kind of a call: its variant, and the family's further distinction.
#[must_use]
pub fn kind_of(family: &dyn Family, call: &KernelCall) -> String {
    let more = family.kind(call);
    if more.is_empty() { variant(call) } else { format!("{}:{more}", variant(call)) }
}

/// Returns the names of the features of a family's stages, in their order.
pub fn names(family: &dyn Family) -> impl Iterator<Item = &'static str> {
    let own = family.feature_names().iter().chain(family.more_names());
    std::iter::once(ESTIMATE).chain(own.copied())
}

/// Appends the features of a call with a given earlier estimate.
pub fn features(
    family: &dyn Family,
    call: &KernelCall,
    ctx: &Context,
    spec: &DeviceSpec,
    before: Nanos,
    out: &mut Vec<f32>,
) {
    out.push((before.0.max(1) as f32).ln());
    family.features(call, ctx, spec, out);
    family.more(call, ctx, spec, out);
}

/// Function that estimates calls.
pub type Estimator<'a> = dyn Fn(&[(&KernelCall, &Context)]) -> Vec<Estimate> + 'a;

/// Corrects the estimates of calls of one family by its stages, one after the other. `again` returns the earlier estimates in
/// other contexts.
///
/// A stage without kernels inside steps predicts the time of a call alone. The earlier models may predict better inside a step:
/// they may have learnt there what the stage learnt outside. So inside a step the correction is that of the
/// call alone, on its time alone, and being inside a step changes that by no more than the usual range.
pub fn correct(
    stages: &[Stage],
    family: &dyn Family,
    calls: &[(&KernelCall, &Context)],
    spec: &DeviceSpec,
    before: Vec<Estimate>,
    again: &Estimator<'_>,
) -> Vec<Estimate> {
    let mut after = before.clone();
    let mut believed = vec![0.0; calls.len()];
    let apply = |calls: &[(&KernelCall, &Context)], estimates: &mut [Estimate], believed: &mut [f64]| {
        stages.iter().for_each(|stage| stage.apply(family, calls, spec, estimates, believed));
    };
    apply(calls, &mut after, &mut believed);
    // The last stage with such calls, and none inside a step.
    let unseen = |at: usize| {
        let kind = kind_of(family, calls[at].0);
        stages.iter().rev().find(|stage| !stage.in_steps && stage.kinds.contains_key(&kind))
    };
    let in_step = (0..calls.len()).filter(|&at| calls[at].1.setting == Setting::Step && believed[at] > 0.0);
    let (inside, unseen): (Vec<usize>, Vec<&Stage>) =
        in_step.filter_map(|at| Some((at, unseen(at)?))).unzip();
    if inside.is_empty() {
        return after;
    }
    let alone: Vec<Context> =
        inside.iter().map(|&at| Context { setting: Setting::After, ..calls[at].1.clone() }).collect();
    let alone: Vec<(&KernelCall, &Context)> =
        inside.iter().zip(&alone).map(|(&at, ctx)| (calls[at].0, ctx)).collect();
    let first = again(&alone);
    let (mut last, mut taken) = (first.clone(), vec![0.0; alone.len()]);
    apply(&alone, &mut last, &mut taken);
    let ln = |estimate: &Estimate| estimate.time.as_micros().max(1e-3).ln();
    for (row, &at) in inside.iter().enumerate() {
        let by_step = ln(&before[at]) - ln(&first[row]);
        let [least, most] = unseen[row].by_step;
        let usual = by_step.clamp(least, most);
        let correction = ln(&last[row]) - ln(&first[row]) + taken[row] * (usual - by_step);
        after[at].time = Nanos::from_micros_f64((ln(&before[at]) + correction).exp());
    }
    after
}

impl Stage {
    /// Corrects the estimates of calls of one family, and adds to the share of corrections that is applied, 0 to 1.
    fn apply(
        &self,
        family: &dyn Family,
        calls: &[(&KernelCall, &Context)],
        spec: &DeviceSpec,
        estimates: &mut [Estimate],
        believed: &mut [f64],
    ) {
        let seen: Vec<(usize, &Kind)> = calls
            .iter()
            .enumerate()
            .filter_map(|(at, (call, _))| Some((at, self.kinds.get(&kind_of(family, call))?)))
            .collect();
        if seen.is_empty() {
            return;
        }
        let mut table = Table::new(names(family).count());
        for &(at, _) in &seen {
            let ((call, ctx), before) = (calls[at], estimates[at].time);
            table.push(|out| features(family, call, ctx, spec, before, out));
        }
        let corrections = self.trees.predict(&table);
        let scales = self.interval.scale.predict(&table);
        for (row, &(at, kind)) in seen.iter().enumerate() {
            let unseen_setting = !self.in_steps && calls[at].1.setting == Setting::Step;
            let here = CallCorrection {
                correction: f64::from(corrections[row] * kind.share),
                widths: self.interval.half_widths(scales[row]),
                distance: distance(family, table.row(row), &kind.ranges),
                unseen_setting,
            };
            estimates[at] = here.corrected(&estimates[at]);
            believed[at] += (1.0 - believed[at]) * f64::from(kind.share) * belief(here.distance);
        }
    }
}

/// Correction of one call by a stage.
struct CallCorrection {
    correction: f64,
    widths: (f64, f64),
    distance: f64,
    unseen_setting: bool,
}

impl CallCorrection {
    fn corrected(&self, before: &Estimate) -> Estimate {
        let belief = belief(self.distance);
        let (factor, more) = widening(self.distance);
        let blend = |new: f64, old: f64| belief * new + (1.0 - belief) * old;
        // Kernels inside a step differ from those that run alone: without any inside a step, the uncertainty stays as it was.
        let least = if self.unseen_setting { before.own } else { 0.0 };
        let own = (self.widths.0 * factor + more).max(least);
        Estimate {
            time: Nanos::from_micros_f64(before.time.as_micros() * (belief * self.correction).exp()),
            own: blend(own, before.own),
            shared: blend(self.widths.1, before.shared),
            source: Source::Fitted,
            extrapolated: before.extrapolated && self.distance > TOLERATED,
        }
    }
}

/// Distance of a row from the ranges, as [`excess`] counts. The earlier estimate is not a size.
fn distance(family: &dyn Family, row: &[f32], ranges: &[[f32; 2]]) -> f64 {
    let named = names(family).zip(row).zip(ranges).skip(1);
    excess(named.map(|((name, &value), &[low, high])| (name, value, low, high)))
}
