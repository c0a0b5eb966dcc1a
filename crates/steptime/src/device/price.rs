//! A time for every device activity of a step, from a device profile.

use steptime_cost::device::{DeviceProfile, Estimate, EstimateSum, ModelChoice, Source};
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::launches::{Known, Launch};

/// The device side of a step, priced by a profile.
#[derive(Debug, Clone)]
pub struct DevicePrices {
    /// The time of each activity, rows of [`StepGraph::activities`].
    pub durations: Vec<Nanos>,
    /// The estimate of each launch.
    pub estimates: Vec<Estimate>,
    /// Half-width of the 90 % interval of all device time together, relative.
    pub spread: f64,
    /// Where the times came from.
    pub coverage: ModelCoverage,
}

/// Where predicted device time came from, as shares of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ModelCoverage {
    /// From models fitted on a sweep.
    pub fitted: f64,
    /// From formulas over the device's specification.
    pub analytic: f64,
    /// From the bytes of an op that is not known.
    pub fallback: f64,
    /// Of launches whose op and arguments are not known: the shortest kernel each.
    pub unknown: f64,
    /// Outside of the range that models were fitted on; part of the shares above.
    pub extrapolated: f64,
}

/// Prices the launches of a step.
///
/// What an op launches is priced as a whole; its activities share the time evenly.
#[must_use]
pub fn price(
    graph: &StepGraph,
    launches: &[Launch],
    profile: &DeviceProfile,
    models: ModelChoice,
) -> DevicePrices {
    let calls: Vec<_> = launches.iter().map(|launch| (&launch.call, &launch.context)).collect();
    let estimates = profile.price_all(&calls, models);
    let mut durations = vec![Nanos::ZERO; graph.activities.len()];
    let mut total = EstimateSum::default();
    for (launch, estimate) in launches.iter().zip(&estimates) {
        total.add(launch.call.kernel.family(), estimate, 1);
        let share = estimate.time.0 / launch.activities.len().max(1) as i64;
        for &activity in &launch.activities {
            durations[activity as usize] = Nanos(share);
        }
    }
    let coverage = coverage(launches, &estimates);
    let spread = total.half_width().0 as f64 / (total.time().0.max(1)) as f64;
    DevicePrices { durations, spread, coverage, estimates }
}

fn coverage(launches: &[Launch], estimates: &[Estimate]) -> ModelCoverage {
    let mut coverage = ModelCoverage::default();
    let total: f64 = estimates.iter().map(|estimate| estimate.time.as_micros()).sum();
    for (launch, estimate) in launches.iter().zip(estimates) {
        let share = estimate.time.as_micros() / total.max(f64::MIN_POSITIVE);
        *match (launch.known, estimate.source) {
            (Known::Nothing, Source::Fallback | Source::Unknown) | (_, Source::Unknown) => {
                &mut coverage.unknown
            }
            (Known::Arguments, _) | (_, Source::Fallback) => &mut coverage.fallback,
            (_, Source::Analytic) => &mut coverage.analytic,
            _ => &mut coverage.fitted,
        } += share;
        if estimate.extrapolated {
            coverage.extrapolated += share;
        }
    }
    coverage
}
