//! Device times of a changed step: measured where nothing changed, measured and scaled where arguments changed, else priced.

use rustc_hash::FxHashMap;
use steptime_aten::kernel::{Kernel, KernelCall};
use steptime_cost::Demands;
use steptime_cost::device::{DeviceProfile, Estimate, ModelChoice};
use steptime_graph::{ActivityId, TiVec};
use steptime_step::{ReusedRows, ScheduledStep};
use steptime_trace::Nanos;

use super::{Base, ModifiedStep, Pricing, stream_demand};
use crate::error::Error;
use crate::pricing::{self, Launch};
use crate::step::Step;
use crate::time_sources::Kernels;
use crate::uncertainty::uncertainty;

/// The device side of a changed step.
pub(super) struct DeviceSide {
    pub durations: TiVec<ActivityId, Nanos>,
    /// Half-width of the 90 % interval of all device time together, relative.
    pub spread: f64,
    /// Shares of device time: measured, measured and scaled, priced by a model alone.
    pub shares: [f64; 3],
    /// Demands of kernels that share the GPU; `None` where no rule made streams.
    pub demands: Option<Demands>,
}

impl DeviceSide {
    /// Prices a changed step, captured or not.
    pub(super) fn price(
        recorded: &Step,
        pricing: &Pricing<'_>,
        base: &Base,
        edited: &ModifiedStep,
    ) -> Result<DeviceSide, Error> {
        let mut flat = DeviceSide::before_capture(recorded, pricing, base, edited)?;
        let own = recorded.graph.device.as_deref().unwrap_or_default();
        let gpu =
            if let Kernels::Device { profile, .. } = &pricing.kernels { &*profile.spec.name } else { own };
        pricing::price_new(&edited.flat().graph, gpu, &mut flat.durations)?;
        if let Some((demands, spread)) = stream_demand::demands(base, edited, &flat.durations) {
            flat.spread = flat.spread.hypot(spread);
            flat.demands = Some(demands);
        }
        Ok(match edited.after_capture() {
            Some(carried) => flat.after_capture(carried),
            None => flat,
        })
    }

    fn before_capture(
        recorded: &Step,
        pricing: &Pricing<'_>,
        base: &Base,
        edited: &ModifiedStep,
    ) -> Result<DeviceSide, Error> {
        let (now, scheduled) = (&edited.launches, edited.flat());
        if let Kernels::Device { profile, models, .. } = &pricing.kernels {
            let calls: Vec<_> = now.iter().map(|launch| (&launch.call, &launch.context)).collect();
            let estimates = base.prices.price_all(profile, &calls, *models);
            let measured = pricing::MeasuredTimes::carried(&recorded.graph, &scheduled.carried.activities);
            let prices = pricing::with_estimates(&scheduled.graph, measured, now, profile, estimates);
            let (own, scaled) = (prices.coverage.measured, prices.coverage.scaled);
            return Ok(DeviceSide {
                durations: prices.durations,
                spread: prices.spread,
                shares: [own, scaled, 1.0 - own - scaled],
                demands: None,
            });
        }
        let changes = changes(&base.launches, now, &edited.step, scheduled);
        if changes.is_empty() {
            let measured = |at: ActivityId| base.measured[at];
            let durations = scheduled.carried.activities.iter().map(|at| at.map_or(Nanos::ZERO, measured));
            return Ok(DeviceSide {
                durations: durations.collect(),
                spread: uncertainty().kernels.measured,
                shares: [1.0, 0.0, 0.0],
                demands: None,
            });
        }
        let profile = base.own_profile(recorded)?;
        Ok(scaled(base, now, &changes, scheduled, profile))
    }

    /// Maps the times to activities that were carried over from the priced ones.
    fn after_capture(self, carried: &ReusedRows) -> DeviceSide {
        let durations = carried.activities.iter();
        let durations = durations.map(|at| at.map_or(Nanos::ZERO, |at| self.durations[at])).collect();
        let asked = |of: &Demands| carried.activities.iter().map(|at| at.and_then(|at| of.of[at])).collect();
        let demands = self.demands.as_ref().map(|all| Demands { of: asked(all), ..*all });
        DeviceSide { durations, spread: self.spread.hypot(uncertainty().kernels.captured), demands, ..self }
    }
}

/// A changed launch: its index now, and its index before where it was recorded.
struct ChangedLaunch {
    now: usize,
    was: Option<usize>,
}

fn changes(
    was: &[Launch],
    now: &[Launch],
    step: &steptime_step::StepIr,
    scheduled: &ScheduledStep,
) -> Vec<ChangedLaunch> {
    let carried = &scheduled.carried;
    let mut of_activity: FxHashMap<ActivityId, usize> = FxHashMap::default();
    for (at, launch) in was.iter().enumerate() {
        of_activity.extend(launch.activities.iter().map(|&activity| (activity, at)));
    }
    let of_op: FxHashMap<_, usize> =
        was.iter().enumerate().filter_map(|(at, launch)| Some((launch.op?, at))).collect();
    // An op whose launches changed is still the same op.
    let by_op = |launch: &Launch| {
        let recorded = step.recorded(scheduled.ops[launch.op?])?;
        let at = of_op.get(&recorded).copied()?;
        is_alike(&was[at].call, &launch.call).then_some(at)
    };
    let mut changes = Vec::new();
    for (at, launch) in now.iter().enumerate() {
        let before = launch.activities.iter().find_map(|&activity| carried.activities[activity]);
        let before =
            before.and_then(|activity| of_activity.get(&activity)).copied().or_else(|| by_op(launch));
        let same = before.is_some_and(|before| {
            let other = &was[before];
            other.call == launch.call && other.context == launch.context
        });
        let whole = launch.activities.iter().all(|&activity| carried.activities[activity].is_some());
        if !(same && whole) {
            changes.push(ChangedLaunch { now: at, was: before });
        }
    }
    changes
}

/// Whether a kernel's measured time is informative about another. The measured time of a copy from pageable memory is the host's work,
/// which does not apply to pinned memory. Few lookups are summed by one kernel, many are first sorted by a dozen kernels: neither is
/// informative about the other.
fn is_alike(was: &KernelCall, now: &KernelCall) -> bool {
    match (&was.kernel, &now.kernel) {
        (Kernel::Transfer(was), Kernel::Transfer(now)) => was.pinned == now.pinned,
        (Kernel::Scatter(_), Kernel::Scatter(_)) => was.launches == now.launches,
        (was, now) => was.family() == now.family(),
    }
}

fn scaled(
    base: &Base,
    now: &[Launch],
    changes: &[ChangedLaunch],
    scheduled: &ScheduledStep,
    profile: &DeviceProfile,
) -> DeviceSide {
    let (was, measured) = (&base.launches, &base.measured);
    let carried = &scheduled.carried;
    let mut durations: TiVec<ActivityId, Nanos> =
        carried.activities.iter().map(|at| at.map_or(Nanos::ZERO, |at| measured[at])).collect();
    let after: Vec<_> =
        changes.iter().map(|change| (&now[change.now].call, &now[change.now].context)).collect();
    let after = base.prices.price_all(profile, &after, ModelChoice::default());
    let before: Vec<&Launch> = changes.iter().filter_map(|change| Some(&was[change.was?])).collect();
    let before: Vec<_> = before.iter().map(|launch| (&launch.call, &launch.context)).collect();
    let mut before = base.prices.price_all(profile, &before, ModelChoice::default()).into_iter();
    let mut times = [0.0; 3];
    let (mut variance, mut shared) = (0.0, 0.0);
    for (change, after) in changes.iter().zip(&after) {
        let launch = &now[change.now];
        let old = change.was.and_then(|_| before.next());
        let whole = launch.activities.iter().all(|&activity| carried.activities[activity].is_some());
        let ratio =
            old.filter(|old| old.time > Nanos::ZERO).map(|old| after.time.0 as f64 / old.time.0 as f64);
        let activities = launch.activities.iter();
        let total: f64 = match (ratio, change.was) {
            (Some(ratio), _) if whole => activities
                .map(|&activity| {
                    durations[activity] = Nanos((durations[activity].0 as f64 * ratio).round() as i64);
                    durations[activity].as_micros()
                })
                .sum(),
            (known, before) => {
                let was = before
                    .map(|at| was[at].activities.iter().map(|&activity| measured[activity].0).sum::<i64>());
                let all = match (known, was) {
                    (Some(ratio), Some(was)) if was > 0 => (was as f64 * ratio).round() as i64,
                    _ => after.time.0,
                };
                let share = Nanos(all / launch.activities.len().max(1) as i64);
                activities.for_each(|&activity| durations[activity] = share);
                Nanos(all).as_micros()
            }
        };
        let of_ratio = if ratio.is_some() { uncertainty().kernels.ratio_share } else { 1.0 };
        times[if of_ratio < 1.0 { 1 } else { 2 }] += total;
        add_spread(after, total * of_ratio, &mut variance, &mut shared);
    }
    let all: f64 = durations.iter().map(|time| time.as_micros()).sum();
    times[0] = (all - times[1] - times[2]).max(0.0);
    let total = all.max(f64::MIN_POSITIVE);
    let spread = (variance + shared * shared).sqrt() / total;
    DeviceSide {
        durations,
        spread: spread.hypot(uncertainty().kernels.measured),
        shares: times.map(|time| time / total),
        demands: None,
    }
}

/// Adds independent errors of launches in quadrature, and shared ones linearly.
fn add_spread(estimate: &Estimate, time: f64, variance: &mut f64, shared: &mut f64) {
    *variance += (time * estimate.own).powi(2);
    *shared += time * estimate.shared;
}
