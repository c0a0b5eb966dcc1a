//! Doubt: kernels whose measured time on the GPU recorded on differs from that GPU's profile, most often because of another version of PyTorch
//! or its libraries than in the sweep. The predicted GPU will run the same versions.

use std::collections::BTreeMap;

use steptime_cost::device::{DeviceProfile, Estimate, EstimateSum, ModelChoice, Source};
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::Doubt;
use crate::format::kernel_family;
use crate::pricing::{Launch, PricedLaunches, device, is_named, shipped_for};
use crate::step::Step;
use crate::time_sources::Kernels;
use crate::uncertainty::uncertainty;

/// Number of families named.
const NAMED: usize = 2;
/// Maximum number of letters shown of a kernel's name.
const LETTERS: usize = 40;

/// One family of kernels on the GPU recorded on.
#[derive(Debug, Default)]
struct Family<'g> {
    measured: Nanos,
    /// Time by the profile of that GPU.
    expected: EstimateSum,
    /// Predicted time on the GPU of the query.
    predicted: Nanos,
    /// The kernel with the most time.
    longest: Option<(Nanos, &'g str)>,
}

/// The doubt, where measured kernels of a family are outside of its interval by enough to affect the step's time.
pub(super) fn doubt(
    recorded: &Step,
    kernels: &Kernels<'_>,
    priced: Option<&PricedLaunches>,
    step: Nanos,
) -> Option<Doubt> {
    let (Kernels::Device { profile, models, .. }, Some(priced)) = (kernels, priced) else { return None };
    let graph = &recorded.graph;
    let gpu = graph.device.as_deref().filter(|_| graph.is_measured() && !recorded.arguments.is_derived())?;
    let elsewhere =
        if is_named(gpu, &profile.spec.name) { None } else { Some(device(shipped_for(gpu)?).ok()?) };
    let home = elsewhere.as_ref().unwrap_or(profile);
    let expected = expected(home, elsewhere.is_some(), priced, *models);
    let families = by_family(graph, priced, &expected);
    let mut off: Vec<(&str, FamilyError)> =
        families.iter().filter_map(|(&name, family)| Some((name, family.off(step)?))).collect();
    off.sort_by(|(a, x), (b, y)| y.of_step.abs().total_cmp(&x.of_step.abs()).then(a.cmp(b)));
    if off.is_empty() {
        return None;
    }
    let named: Vec<String> =
        off.iter().take(NAMED).map(|&(name, off)| families[name].words(name, off.times)).collect();
    let text = format!(
        "in the recording, {} the prediction of the profile of {}: causes may be another version of PyTorch or its libraries, strides that \
         were not recorded, or an error of the profile; measure a GPU with that version (python -m steptime.measure --minutes 2)",
        named.join(" and "),
        home.spec.name,
    );
    let share = |sign: f64| -> f64 { off.iter().map(|(_, off)| (sign * off.of_step).max(0.0)).sum() };
    Some(Doubt {
        kind: "library",
        text,
        below: -(1.0 - share(-1.0).min(0.9)).ln(),
        above: (1.0 + share(1.0)).ln(),
        no_estimate: false,
    })
}

/// Estimates of each launch by the profile of the GPU recorded on.
fn expected(
    home: &DeviceProfile,
    elsewhere: bool,
    priced: &PricedLaunches,
    models: ModelChoice,
) -> Vec<Estimate> {
    if !elsewhere {
        return priced.prices.estimates.clone();
    }
    let calls: Vec<_> = priced.launches.iter().map(|launch| (&launch.call, &launch.context)).collect();
    home.price_all(&calls, models)
}

/// Groups the measured launches that both GPUs have models for.
fn by_family<'g>(
    graph: &'g StepGraph,
    priced: &PricedLaunches,
    expected: &[Estimate],
) -> BTreeMap<&'static str, Family<'g>> {
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    for ((launch, predicted), expected) in priced.launches.iter().zip(&priced.prices.estimates).zip(expected)
    {
        let modelled = [predicted, expected].iter().all(|estimate| is_modelled(estimate.source));
        // The speed of the host's memory does not depend on the library.
        if !modelled || launch.call.kernel.family() == "transfer" {
            continue;
        }
        let Some(measured) = launch.measured(graph).filter(|time| time.0 > 0) else { continue };
        let name = launch.call.kernel.family();
        let family = families.entry(name).or_default();
        family.measured += measured;
        family.predicted += predicted.time;
        family.expected.add(name, expected, 1);
        family.longest = family.longest.max(longest(graph, launch));
    }
    families
}

fn is_modelled(source: Source) -> bool {
    matches!(source, Source::Fitted | Source::Transferred | Source::Analytic)
}

fn longest<'g>(graph: &'g StepGraph, launch: &Launch) -> Option<(Nanos, &'g str)> {
    let timed = |&activity: &_| {
        Some((graph.samples.median_duration(activity)?, graph.names.get(graph.activities[activity].name)))
    };
    launch.activities.iter().filter_map(timed).max()
}

/// Error of a family on the GPU recorded on.
#[derive(Debug, Clone, Copy)]
struct FamilyError {
    /// Measured time over expected time.
    times: f64,
    /// Change of the predicted step that this would cause, as a share of it.
    of_step: f64,
}

impl Family<'_> {
    /// Its error, where it is outside of its interval and affects the step.
    fn off(&self, step: Nanos) -> Option<FamilyError> {
        let expected = self.expected.time().0.max(1) as f64;
        let times = self.measured.0 as f64 / expected;
        let half_width = self.expected.half_width().0 as f64 / expected;
        let of_step = (times - 1.0) * self.predicted.0 as f64 / step.0.max(1) as f64;
        (times.ln().abs() > half_width && of_step.abs() > uncertainty().doubts.library.threshold)
            .then_some(FamilyError { times, of_step })
    }

    /// Describes it: `softmax took 1.50 times (262.468 ms, not 174.530; mostly cunn_SoftMaxForward)`.
    fn words(&self, name: &str, times: f64) -> String {
        let short = |name| kernel_family(name).chars().take(LETTERS).collect::<String>();
        let mostly = self.longest.map_or_else(String::new, |(_, name)| format!("; mostly {}", short(name)));
        let [measured, expected] = [self.measured, self.expected.time()].map(Nanos::as_millis);
        format!("{name} took {times:.2} times ({measured:.3} ms, not {expected:.3}{mostly})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(measured: i64, expected: i64, shared: f64) -> Family<'static> {
        let estimate =
            Estimate { time: Nanos(expected), own: 0.0, shared, source: Source::Fitted, extrapolated: false };
        let mut family =
            Family { measured: Nanos(measured), predicted: Nanos(expected / 2), ..Family::default() };
        family.expected.add("softmax", &estimate, 1);
        family
    }

    #[test]
    fn a_family_out_of_its_interval_is_off_by_what_the_step_shows_of_it() {
        let off = family(300, 200, 0.2).off(Nanos(1000)).expect("off");
        assert!((off.times - 1.5).abs() < 1e-12, "{off:?}");
        assert!((off.of_step - 0.05).abs() < 1e-12, "{off:?}");
        assert!(family(100, 200, 0.2).off(Nanos(1000)).expect("off").of_step < 0.0);
    }

    #[test]
    fn what_its_interval_holds_or_no_step_shows_is_not_said() {
        assert!(family(300, 200, 0.5).off(Nanos(1000)).is_none());
        assert!(family(300, 200, 0.2).off(Nanos(10_000)).is_none());
    }
}
