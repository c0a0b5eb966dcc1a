//! Prices of every device activity of a step, from a device profile.

use steptime_cost::device::{DeviceProfile, Estimate, EstimateSum, ModelChoice, Source};
use steptime_graph::{ActivityId, StepGraph, TiVec};
use steptime_trace::Nanos;

use super::launch::{Knowledge, Launch};
use super::transferred_times::{MeasuredTimes, TimeTransfer};

/// The device side of a step, priced by a profile.
#[derive(Debug, Clone)]
pub struct DevicePrices {
    /// Time of each activity, by row of [`StepGraph::activities`].
    pub durations: TiVec<ActivityId, Nanos>,
    /// Estimate of each launch.
    pub estimates: Vec<Estimate>,
    /// Half-width of the 90 % interval of all device time together, relative.
    pub spread: f64,
    /// Sources of the times.
    pub coverage: ModelCoverage,
    /// Device work of the step without a price.
    pub unpriced: UnpricedWork,
}

/// Launches of ops with their prices.
#[derive(Debug, Clone)]
pub struct PricedLaunches {
    /// Launches of each op, in order of execution.
    pub launches: Vec<Launch>,
    /// Their prices.
    pub prices: DevicePrices,
}

/// Sources of predicted device time, as shares of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ModelCoverage {
    /// Share from models fitted on a sweep.
    pub fitted: f64,
    /// Share from models fitted on a sweep of another GPU, applied to this one's specification.
    pub transferred: f64,
    /// Share from formulas over the device's specification.
    pub analytic: f64,
    /// Share kept as measured on this same GPU, for lack of another price.
    pub measured: f64,
    /// Share measured on another GPU and scaled by the ratio of both specifications, for lack of another price.
    pub scaled: f64,
    /// Share priced by the bytes of an unknown op.
    pub fallback: f64,
    /// Share of launches with unknown op and arguments.
    pub unknown: f64,
    /// Share outside of the range of the fitted data; part of the shares above.
    pub extrapolated: f64,
}

/// Device work without a price from a model or from a measurement on a known GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UnpricedWork {
    /// Its share: of measured device time where known, else of launches.
    pub share: f64,
    /// Number of launches.
    pub launches: usize,
    /// Whether any of them lacks arguments: an execution trace would help.
    pub shapeless: bool,
}

/// Prices the launches of a step.
///
/// The launches of an op are priced as a whole, and its activities share the time evenly. A launch without a price keeps its
/// measured time on the GPU recorded on, and is scaled for another.
#[must_use]
pub fn price(
    graph: &StepGraph,
    launches: &[Launch],
    profile: &DeviceProfile,
    models: ModelChoice,
) -> DevicePrices {
    let calls: Vec<_> = launches.iter().map(|launch| (&launch.call, &launch.context)).collect();
    let estimates = profile.price_all(&calls, models);
    with_estimates(graph, MeasuredTimes::new(graph), launches, profile, estimates)
}

/// Like [`price`], with given estimates of a profile and given measured times.
pub(crate) fn with_estimates(
    graph: &StepGraph,
    measured: MeasuredTimes<'_>,
    launches: &[Launch],
    profile: &DeviceProfile,
    mut estimates: Vec<Estimate>,
) -> DevicePrices {
    let mut durations: TiVec<ActivityId, Nanos> = vec![Nanos::ZERO; graph.activities.len()].into();
    let mut total = EstimateSum::default();
    let elsewhere = TimeTransfer::new(measured, profile);
    let mut unpriced = UnpricedWork::default();
    let mut weights = [0.0; 2];
    for (launch, estimate) in launches.iter().zip(&mut estimates) {
        let own = is_unpriced(launch, estimate).then(|| elsewhere.estimate(launch)).flatten();
        let weight = measured.launch_time(launch).map_or(0.0, Nanos::as_micros);
        weights[0] += weight;
        match own {
            Some((stand_in, each)) => {
                *estimate = stand_in;
                for (&activity, time) in launch.activities.iter().zip(each) {
                    durations[activity] = time;
                }
            }
            None => {
                let share = estimate.time.0 / launch.activities.len().max(1) as i64;
                for &activity in &launch.activities {
                    durations[activity] = Nanos(share);
                }
            }
        }
        if is_unpriced(launch, estimate) {
            weights[1] += weight;
            unpriced.launches += 1;
            unpriced.shapeless |= launch.known == Knowledge::Nothing;
        }
        total.add(launch.call.kernel.family(), estimate, 1);
    }
    unpriced.share = match weights {
        [all, part] if all > 0.0 => part / all,
        _ => unpriced.launches as f64 / launches.len().max(1) as f64,
    };
    let coverage = coverage(launches, &estimates);
    let spread = total.half_width().0 as f64 / (total.time().0.max(1)) as f64;
    DevicePrices { durations, spread, coverage, unpriced, estimates }
}

/// Whether a launch has only a price from its bytes.
fn is_unpriced(launch: &Launch, estimate: &Estimate) -> bool {
    match estimate.source {
        Source::Measured | Source::Scaled => false,
        Source::Fallback | Source::Unknown => true,
        Source::Fitted | Source::Transferred | Source::Analytic | Source::Paper => {
            launch.known == Knowledge::Arguments
        }
    }
}

fn coverage(launches: &[Launch], estimates: &[Estimate]) -> ModelCoverage {
    let mut coverage = ModelCoverage::default();
    let total: f64 = estimates.iter().map(|estimate| estimate.time.as_micros()).sum();
    for (launch, estimate) in launches.iter().zip(estimates) {
        let share = estimate.time.as_micros() / total.max(f64::MIN_POSITIVE);
        *match (launch.known, estimate.source) {
            (_, Source::Measured) => &mut coverage.measured,
            (_, Source::Scaled) => &mut coverage.scaled,
            (Knowledge::Nothing, Source::Fallback) | (_, Source::Unknown) => &mut coverage.unknown,
            (Knowledge::Arguments, _) | (_, Source::Fallback) => &mut coverage.fallback,
            (_, Source::Transferred) => &mut coverage.transferred,
            (_, Source::Analytic) => &mut coverage.analytic,
            _ => &mut coverage.fitted,
        } += share;
        if estimate.extrapolated {
            coverage.extrapolated += share;
        }
    }
    coverage
}
