//! Kernels that took another time, on the GPU recorded on, than the profile of that GPU says: most often of other versions of PyTorch
//! or of its libraries than those that were swept. The GPU that is asked for will run the same.

use std::collections::BTreeMap;

use steptime_cost::device::{DeviceProfile, Estimate, EstimateSum, ModelChoice, Source};
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::Doubt;
use crate::answers::words::kernel_family;
use crate::device::{Launch, PricedLaunches, device, is_named, shipped_for};
use crate::sources::Kernels;
use crate::step::Step;

/// What the step may be off by, by this alone, before it is worth a word: a share of it.
const MENTIONED: f64 = 0.02;
/// How many families are named.
const NAMED: usize = 2;
/// Letters of a kernel's name that are shown.
const LETTERS: usize = 40;

/// One family of kernels on the GPU recorded on.
#[derive(Debug, Default)]
struct Family<'g> {
    measured: Nanos,
    /// What the profile of that GPU says.
    expected: EstimateSum,
    /// What the GPU that is asked for is predicted to take.
    predicted: Nanos,
    /// The kernel that took the most time.
    longest: Option<(Nanos, &'g str)>,
}

/// The doubt, where the measured kernels of a family are out of its interval by so much that the step's time shows it.
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
    let mut off: Vec<(&str, Off)> =
        families.iter().filter_map(|(&name, family)| Some((name, family.off(step)?))).collect();
    off.sort_by(|(a, x), (b, y)| y.of_step.abs().total_cmp(&x.of_step.abs()).then(a.cmp(b)));
    if off.is_empty() {
        return None;
    }
    let named: Vec<String> =
        off.iter().take(NAMED).map(|&(name, off)| families[name].words(name, off.times)).collect();
    let text = format!(
        "while it was recorded, {} what the profile of {} says: kernels of another version of PyTorch or its libraries, \
         strides that were not recorded, or an error of the profile; measure a GPU with that version (python -m steptime.measure \
         --minutes 2)",
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

/// What the profile of the GPU recorded on says of each launch.
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

/// Launches that both GPUs have models for, and that were measured.
fn by_family<'g>(
    graph: &'g StepGraph,
    priced: &PricedLaunches,
    expected: &[Estimate],
) -> BTreeMap<&'static str, Family<'g>> {
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    for ((launch, predicted), expected) in priced.launches.iter().zip(&priced.prices.estimates).zip(expected)
    {
        let modelled = [predicted, expected].iter().all(|estimate| is_modelled(estimate.source));
        // How fast the host's memory is, is no matter of the library.
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

/// How far a family is off where it was recorded.
#[derive(Debug, Clone, Copy)]
struct Off {
    /// Measured over expected.
    times: f64,
    /// How much longer that would make the step that is asked for, as a share of it.
    of_step: f64,
}

impl Family<'_> {
    /// How far it is off, where its interval does not hold that and the step would show it.
    fn off(&self, step: Nanos) -> Option<Off> {
        let expected = self.expected.time().0.max(1) as f64;
        let times = self.measured.0 as f64 / expected;
        let half_width = self.expected.half_width().0 as f64 / expected;
        let of_step = (times - 1.0) * self.predicted.0 as f64 / step.0.max(1) as f64;
        (times.ln().abs() > half_width && of_step.abs() > MENTIONED).then_some(Off { times, of_step })
    }

    /// `softmax took 1.50 times (262.468 ms, not 174.530; mostly cunn_SoftMaxForward)`.
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
