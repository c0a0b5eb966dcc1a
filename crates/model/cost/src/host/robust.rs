//! Robust means of samples with long tails.

use steptime_graph::{StepGraph, StepId};
use steptime_trace::Nanos;

/// Mean of the ranks from 10 % to 50 %: the time of a gap while the host is undisturbed.
///
/// Slow phases of a host only lengthen gaps, so the upper half of the ranks is left out. The lowest tenth is left out
/// because it holds the profiler's rounding. `None` without samples. Sorts its argument.
pub fn quiet_mean(samples: &mut [Nanos]) -> Option<Nanos> {
    mean_of_ranks(samples, 0.1, 0.5)
}

/// Returns the steps whose periods on the host have the ranks from `low` to `high` (shares), at least one, in order; all of
/// them if no period is known.
///
/// The mean of each gap over *steps* adds up to the duration of those steps. The quiet mean of each gap does not: if
/// gaps have long tails every step has some of them, and the sum undercuts them all.
pub fn steps_of_ranks(graph: &StepGraph, low: f64, high: f64) -> Vec<StepId> {
    let samples = &graph.samples;
    let mut known: Vec<(Nanos, StepId)> =
        samples.steps().filter_map(|step| Some((samples.host_period(step)?, step))).collect();
    if known.is_empty() {
        return samples.steps().collect();
    }
    known.sort_unstable();
    let count = known.len() as f64;
    let from = ((low * count).floor() as usize).min(known.len() - 1);
    let to = ((high * count).ceil() as usize).clamp(from + 1, known.len());
    let mut steps: Vec<StepId> = known[from..to].iter().map(|&(_, step)| step).collect();
    steps.sort_unstable();
    steps
}

/// Mean of the ranks from `low` to `high` (shares); at least one rank. Sorts its argument.
pub fn mean_of_ranks(samples: &mut [Nanos], low: f64, high: f64) -> Option<Nanos> {
    if samples.is_empty() {
        return None;
    }
    samples.sort_unstable();
    let count = samples.len() as f64;
    let from = ((low * count).floor() as usize).min(samples.len() - 1);
    let to = ((high * count).ceil() as usize).clamp(from + 1, samples.len());
    let ranks = &samples[from..to];
    Some(ranks.iter().copied().sum::<Nanos>() / ranks.len() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_spell_does_not_move_it() {
        let mut quiet: Vec<Nanos> = (0..20).map(|i| Nanos(100 + i % 3)).collect();
        let alone = quiet_mean(&mut quiet.clone());
        for slow in &mut quiet[12..] {
            slow.0 *= 7;
        }
        assert_eq!(quiet_mean(&mut quiet).map(|n| n.0 / 10), alone.map(|n| n.0 / 10));
        assert_eq!(quiet_mean(&mut [Nanos(5)]), Some(Nanos(5)));
        assert_eq!(quiet_mean(&mut []), None);
    }
}
