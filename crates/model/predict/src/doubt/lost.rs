//! Doubt: kernels of the recording that are missing in the step, lost by the profiler or launched by calls that were not recorded.

use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::Doubt;
use crate::format::counted;
use crate::uncertainty::uncertainty;

/// The doubt, where kernels are missing.
pub(super) fn doubt(graph: &StepGraph) -> Option<Doubt> {
    if graph.is_measured() { launches(graph).or_else(|| time(graph)) } else { None }
}

/// The doubt from launches without a kernel.
fn launches(graph: &StepGraph) -> Option<Doubt> {
    let coverage = &graph.coverage;
    let share = coverage.launches_lost as f64 / coverage.launches_in_steps.max(1) as f64;
    if share <= uncertainty().doubts.lost.launches {
        return None;
    }
    let lost = format!(
        "{} of {} kernel launches have no kernel in the recording: the profiler lost them",
        coverage.launches_lost, coverage.launches_in_steps
    );
    let (left, all) = (coverage.steps_incomplete, coverage.steps);
    if left > 0 {
        let text = format!("{lost}; {} of {all} were left out", counted(left, "step"));
        return Some(Doubt { kind: "lost", text, below: 0.0, above: 0.0, no_estimate: false });
    }
    let text = format!(
        "{lost}; the step lacks their time and the waits for them; record fewer steps at a time, or without stacks"
    );
    let above = (1.0 / (1.0 - share).max(0.1)).ln();
    Some(Doubt {
        kind: "lost",
        text,
        below: 0.0,
        above,
        no_estimate: share > uncertainty().doubts.lost.no_estimate,
    })
}

/// The doubt from device time of kernels outside of all steps.
fn time(graph: &StepGraph) -> Option<Doubt> {
    let steps = graph.samples.steps();
    let mean =
        steps.clone().map(|step| graph.samples.active(step)).sum::<Nanos>() / steps.len().max(1) as i64;
    let all = graph.witness.active;
    let missing = 1.0 - mean.0 as f64 / all.0.max(1) as f64;
    (missing.abs() > uncertainty().doubts.lost.time && all > Nanos::ZERO).then(|| {
        let text = format!(
            "all kernels of the recording run for {:.3} ms per step, kernels that calls within steps launched for {:.3} ms: the others have \
             no call in a step",
            all.as_millis(),
            mean.as_millis()
        );
        let above = (1.0 / (1.0 - missing).clamp(0.1, 1.0)).ln();
        Doubt { kind: "lost", text, below: 0.0, above, no_estimate: missing > uncertainty().doubts.lost.no_estimate }
    })
}
