//! Slowness of a recording's host while it was profiled, measured by its gaps.

use steptime_graph::{Role, StepGraph};

use super::profile::HostProfile;
use super::profile_gaps::UsualGaps;
use super::profiler::ProfilerCost;
use super::recorded_gaps;
pub use super::speed::Slowness;

/// Level at which the profile must know a gap for it to count, or a narrower one.
const KNOWN_LEVEL: usize = 2;
/// Greatest duration of a gap that counts, microseconds.
const SHORT_US: f64 = 15.0;
/// Least sum of half of the gaps that count, microseconds.
const FEWEST_US: f64 = 50.0;

impl Slowness {
    /// Measures the slowness of a graph's own host while it was profiled: the median of its gaps, the profiler's part left in, over the
    /// times on the profile's host with the profiler on.
    ///
    /// Only short gaps that the profile knows by their neighbours count: their work is the same in every model.
    pub fn while_profiled(graph: &StepGraph, profile: &HostProfile, usual: &UsualGaps) -> Slowness {
        let parts = profile.profiler.gap_costs(graph);
        let mut ratios: [Vec<Ratio>; 2] = Default::default();
        for (mark, own) in recorded_gaps::gaps(graph, &ProfilerCost::NONE).into_iter_enumerated() {
            let row = &graph.marks[mark];
            let (Some(own), Some(usual)) = (own, usual.0[mark]) else { continue };
            let expected = usual.us + parts[mark].as_micros();
            let short = expected > 0.0 && expected <= SHORT_US;
            if !short || usual.level > KNOWN_LEVEL || row.wraps || graph.is_hand_off(mark) {
                continue;
            }
            let backward = graph.threads[row.thread].role == Role::Autograd;
            ratios[usize::from(backward)]
                .push(Ratio { slower: own.as_micros() / expected, weight: expected });
        }
        let [main, backward] = ratios.map(median);
        Slowness { main, backward }
    }
}

/// Ratio of a gap's measured to its expected time, weighted by the expected time.
struct Ratio {
    slower: f64,
    weight: f64,
}

/// Returns the weighted median; `None` for too little time.
fn median(mut ratios: Vec<Ratio>) -> Option<f64> {
    ratios.sort_by(|a, b| a.slower.total_cmp(&b.slower));
    let half = ratios.iter().map(|ratio| ratio.weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let middle = ratios.iter().find(|ratio| {
        sum += ratio.weight;
        sum >= half
    })?;
    (half >= FEWEST_US && middle.slower > 0.0).then_some(middle.slower)
}
