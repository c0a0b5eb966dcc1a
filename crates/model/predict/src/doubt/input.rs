//! Doubt: steps whose waits for input differ, so that one time does not describe them.

use steptime_graph::{MarkId, StepGraph, StepId, median};
use steptime_trace::Nanos;

use super::Doubt;
use crate::uncertainty::uncertainty;

/// The doubt, where waits for the data loader differ from step to step.
pub(super) fn doubt(graph: &StepGraph) -> Option<Doubt> {
    let samples = &graph.samples;
    let loaders: Vec<MarkId> = graph.marks.keys().filter(|&mark| graph.waits_for_input(mark)).collect();
    let wait = |step: StepId| -> Nanos {
        loaders.iter().filter_map(|&mark| samples.gap(step, mark, &graph.marks[mark])).sum()
    };
    let mut waits: Vec<Nanos> = samples.steps().map(wait).collect();
    let mut periods: Vec<Nanos> = samples.steps().filter_map(|step| samples.period(step)).collect();
    if loaders.is_empty() || periods.len() < 3 {
        return None;
    }
    waits.sort_unstable();
    periods.sort_unstable();
    let range = ms(&waits, 0.9) - ms(&waits, 0.1);
    let mean = periods.iter().map(|period| period.as_millis()).sum::<f64>() / periods.len() as f64;
    let (middle, late) = (median(&mut periods)?.as_millis(), ms(&periods, 0.9));
    (range > uncertainty().doubts.input.threshold * middle && middle > 0.0).then(|| Doubt {
        kind: "input",
        text: format!(
            "the wait for input differs between steps, {:.3} to {:.3} ms: recorded steps take {middle:.3} ms in the median, {mean:.3} ms in \
             the mean and {late:.3} ms in the slowest tenth",
            ms(&waits, 0.0),
            ms(&waits, 1.0),
        ),
        below: 0.0,
        above: (mean / middle).ln().max(0.0),
        no_estimate: false,
    })
}

/// A quantile of sorted times, in milliseconds.
fn ms(sorted: &[Nanos], share: f64) -> f64 {
    let at = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted.get(at).map_or(0.0, |time| time.as_millis())
}
