//! What the user should know of a prediction before believing it.

use steptime::graph::{StepGraph, StepSource};

use super::format::{counted, percent};

/// Relative speeds of the host that nobody needs to hear of.
const ORDINARY: std::ops::RangeInclusive<f64> = 0.85..=1.15;
/// Below this share of matched events the steps do not repeat.
const ALIKE_PERMILLE: usize = 950;

/// Of how the steps were found.
pub fn of_graph(graph: &StepGraph) -> Vec<String> {
    let mut warnings = Vec::new();
    match graph.step_source {
        StepSource::Marked => {}
        StepSource::Repeated => warnings.push("no step marks: steps were found by repetition".into()),
        StepSource::Whole => {
            warnings.push("no step marks and no repetition: the whole trace is taken for one step".into())
        }
    }
    if graph.coverage.marks_matched_permille < ALIKE_PERMILLE {
        let share = percent(graph.coverage.marks_matched_permille as f64 / 1000.0);
        warnings.push(format!("the steps differ: {share} of their host events match the typical step"));
    }
    warnings
}

/// Of the prices.
pub fn of_prices(slowness: Option<f64>, unpriced: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(slowness) = slowness.filter(|s| !ORDINARY.contains(s)) {
        warnings
            .push(format!(
                "the host took {slowness:.2} times the profile's time: slow or fast while recording, or another kind of host"
            ));
    }
    if unpriced > 0 {
        warnings
            .push(format!("{} on the host without a price: taken to cost nothing", counted(unpriced, "gap")));
    }
    warnings
}
