//! What speaks against a prediction, and how much wider that makes its interval. One cause, one file.

mod alone;
pub(crate) mod arguments;
mod captured;
mod copies;
mod cut;
pub(crate) mod emulated;
mod input;
mod library;
mod lost;
pub(crate) mod memory;
mod origin;
mod processes;
mod replay;
mod unpriced;

pub(crate) use self::unpriced::without_model;

use steptime_cost::Guessed;
use steptime_trace::Nanos;

use crate::device::PricedLaunches;
use crate::replay::SelfCheck;
use crate::sources::Kernels;
use crate::step::Step;

/// A replay that is off by more than this, relative, is said.
pub const REPLAY_SAID: f64 = replay::SAID;

/// What a recording's own replay says against it; `None` where it gives what was recorded.
pub fn of_replay(graph: &steptime_graph::StepGraph, check: &SelfCheck) -> Option<Doubt> {
    replay::of(graph, check)
}

/// What speaks against prices of kernels.
pub(crate) fn of_prices(
    recorded: &Step,
    kernels: &Kernels<'_>,
    device: Option<&PricedLaunches>,
) -> Option<Doubt> {
    unpriced::doubt(recorded, kernels, device)
}

/// What a simulated step shows of how well it is known.
#[derive(Debug)]
pub(crate) struct Evidence<'p> {
    /// What ops launch and what it costs, where kernel times come from a device profile.
    pub device: Option<&'p PricedLaunches>,
    /// Copies larger than any that the host profile was fitted on.
    pub guessed: Guessed,
    /// From one step to the next.
    pub step: Nanos,
    /// The recording replayed, where anything was timed.
    pub replay: Option<&'p SelfCheck>,
}

/// All that speaks against a simulated step.
pub(crate) fn all(recorded: &Step, kernels: &Kernels<'_>, evidence: &Evidence<'_>) -> Vec<Doubt> {
    let found = [
        origin::doubt(recorded),
        cut::doubt(recorded),
        captured::doubt(recorded),
        lost::doubt(&recorded.graph),
        input::doubt(&recorded.graph),
        processes::doubt(&recorded.graph),
        unpriced::doubt(recorded, kernels, evidence.device),
        library::doubt(recorded, kernels, evidence.device, evidence.step),
        alone::doubt(&recorded.graph, kernels, evidence.step),
        copies::doubt(evidence.guessed, evidence.step),
        evidence.device.and_then(|device| emulated::doubt(kernels, &device.launches)),
        evidence.replay.and_then(|check| replay::of(&recorded.graph, check)),
    ];
    found.into_iter().flatten().collect()
}

/// An interval of a step, as much wider as doubts want.
pub(crate) fn widened(doubts: &[Doubt], step: Nanos, interval: [Nanos; 2]) -> [Nanos; 2] {
    let sides = interval.map(Nanos::as_millis);
    Doubt::widen(doubts, step.as_millis(), sides).map(Nanos::from_millis_f64)
}

/// A reason to believe a predicted step less: found in the input, shown in the first lines, part of the interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// What it is, for programs: `memory`, `cut`, `captured`, `lost`, `input`, `processes`, `replay`, `ranks`, `host`, `copies`, `unpriced`, `library`, `emulated`, `rule`, `arguments`, `cache`.
    /// What it is, for programs: `memory`, `cut`, `captured`, `replay`, `ranks`, `host`, `copies`, `unpriced`, `library`, `profiler`, `emulated`, `rule`, `arguments`, `cache`.
    pub kind: &'static str,
    /// What is wrong, why where that is known, and what to do, in one line.
    pub text: String,
    /// How much shorter the step may be than predicted: half-width of 90 %, logarithm of a factor.
    pub below: f64,
    /// How much longer it may be, likewise.
    pub above: f64,
    /// Whether the step is so little known that a single time must not be printed as if it were one.
    pub no_estimate: bool,
}

impl Doubt {
    /// The sides of an interval of [`crate::INTERVAL_LEVEL`], in ms about `step`, widened by doubts that are
    /// independent of it and of each other.
    #[must_use]
    pub fn widen(doubts: &[Doubt], step: f64, [low, high]: [f64; 2]) -> [f64; 2] {
        if !(step > 0.0 && low > 0.0) || doubts.is_empty() {
            return [low, high];
        }
        let below = doubts.iter().fold((step / low).ln(), |width, doubt| width.hypot(doubt.below));
        let above = doubts.iter().fold((high / step).ln(), |width, doubt| width.hypot(doubt.above));
        [step * (-below).exp(), step * above.exp()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt(below: f64, above: f64) -> Doubt {
        Doubt { kind: "host", text: String::new(), below, above, no_estimate: false }
    }

    #[test]
    fn widths_add_in_quadrature_on_each_side() {
        let [low, high] = Doubt::widen(&[doubt(0.3, 0.0)], 1.0, [(-0.4f64).exp(), 0.1f64.exp()]);
        assert!((low - (-0.5f64).exp()).abs() < 1e-12, "{low}");
        assert!((high - 0.1f64.exp()).abs() < 1e-12, "{high}");
    }

    #[test]
    fn without_doubts_nothing_moves() {
        assert_eq!(Doubt::widen(&[], 2.0, [1.5, 2.5]), [1.5, 2.5]);
    }
}
