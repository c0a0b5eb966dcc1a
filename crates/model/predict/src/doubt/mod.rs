//! Doubts about a prediction, and how much each widens its interval. One file per cause.

pub(crate) mod arguments;
mod captured;
pub(crate) mod emulated;
mod input;
mod large_copies;
mod library;
mod lost;
pub(crate) mod memory;
mod other_profiler;
mod processes;
mod replay;
mod single_rank;
mod truncated;
mod unpriced;

pub use self::unpriced::without_model;

use steptime_cost::GuessedCopies;
use steptime_trace::Nanos;

use crate::pricing::PricedLaunches;
use crate::replay::SelfCheck;
use crate::step::Step;
use crate::time_sources::Kernels;

/// Doubt from a recording's own replay; `None` where the replay agrees with the recording.
pub fn replay_doubt(graph: &steptime_graph::StepGraph, check: &SelfCheck) -> Option<Doubt> {
    replay::doubt(graph, check)
}

/// Doubt about prices of kernels.
pub(crate) fn price_doubt(
    recorded: &Step,
    kernels: &Kernels<'_>,
    device: Option<&PricedLaunches>,
) -> Option<Doubt> {
    unpriced::doubt(recorded, kernels, device)
}

/// Facts about a simulated step on which doubts are based.
#[derive(Debug)]
pub(crate) struct Evidence<'p> {
    /// Launches and their prices, where kernel times come from a device profile.
    pub device: Option<&'p PricedLaunches>,
    /// Copies larger than any in the data of the host profile.
    pub guessed: GuessedCopies,
    /// Time from one step to the next.
    pub step: Nanos,
    /// Replay of the recording, where anything was timed.
    pub replay: Option<&'p SelfCheck>,
}

/// All doubts about a simulated step.
pub(crate) fn all(recorded: &Step, kernels: &Kernels<'_>, evidence: &Evidence<'_>) -> Vec<Doubt> {
    let found = [
        other_profiler::doubt(recorded),
        truncated::doubt(recorded),
        captured::doubt(recorded),
        lost::doubt(&recorded.graph),
        input::doubt(&recorded.graph),
        processes::doubt(&recorded.graph),
        unpriced::doubt(recorded, kernels, evidence.device),
        library::doubt(recorded, kernels, evidence.device, evidence.step),
        single_rank::doubt(&recorded.graph, kernels, evidence.step),
        large_copies::doubt(evidence.guessed, evidence.step),
        evidence.device.and_then(|device| emulated::doubt(kernels, &device.launches)),
        evidence.replay.and_then(|check| replay::doubt(&recorded.graph, check)),
    ];
    found.into_iter().flatten().collect()
}

/// The interval of a step, widened by doubts.
pub(crate) fn widened(doubts: &[Doubt], step: Nanos, interval: [Nanos; 2]) -> [Nanos; 2] {
    let sides = interval.map(Nanos::as_millis);
    Doubt::widen(doubts, step.as_millis(), sides).map(Nanos::from_millis_f64)
}

/// A reason to trust a predicted step less: found in the input, shown in the first lines of a report, part of the interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// Its kind, for programs: `memory`, `cut`, `captured`, `lost`, `input`, `processes`, `replay`, `ranks`, `host`, `copies`, `unpriced`, `library`,
    /// `profiler`, `emulated`, `rule`, `arguments`, `cache`.
    pub kind: &'static str,
    /// The problem, its cause where known, and a remedy, in one line.
    pub text: String,
    /// Possible shortening of the step against the prediction: half-width of 90 %, logarithm of a factor.
    pub below: f64,
    /// Possible lengthening, likewise.
    pub above: f64,
    /// Whether too little is known of the step to print a single time.
    pub no_estimate: bool,
}

impl Doubt {
    /// Widens an interval of [`crate::INTERVAL_LEVEL`] around `step` (all in milliseconds) by doubts that are
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
