//! Pace of the hosts of a job's ranks.
//!
//! A recording lasts a tenth of a second, and a host's pace drifts within a minute. Without pulses, which give the pace of
//! un-profiled steps, a rank's pace is only known from its profiled steps. The slowest rank determines the step, so that a slow moment of
//! one rank would make every prediction too long. The excess of a rank over the others is therefore halved, and for a rank that
//! was far slower it is taken for a slow moment.

use rayon::prelude::*;
use steptime_cost::PricedGraph;
use steptime_trace::Nanos;

use crate::doubt::Doubt;
use crate::predict::{ordinary_slowness, scale};
use crate::step::Step;
use crate::uncertainty::uncertainty;

/// Factors on the pace of each rank's host.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    /// One factor per rank.
    pub factors: Vec<f64>,
    /// The rank that was far slower than the others, and by which factor.
    pub apart: Option<(u32, f64)>,
}

impl Pace {
    /// Factors for hosts whose pace comes from a profile.
    pub(super) fn none(ranks: usize) -> Pace {
        Pace { factors: vec![1.0; ranks], apart: None }
    }

    /// Factors from the ranks' ordinary host gaps relative to the shipped profile, which accounts for work that differs between ranks.
    pub(super) fn measure(steps: &[Step]) -> Pace {
        let slowness: Vec<Option<f64>> = steps.par_iter().map(ordinary_slowness).collect();
        let known = |step: &Step| step.meta.as_ref().is_some_and(|meta| !meta.pulses.is_empty());
        let mut all: Vec<f64> = slowness.iter().copied().flatten().collect();
        all.sort_by(f64::total_cmp);
        // The lower of the middle two: slow moments are common, fast ones are not.
        let Some(&middle) = all.get(all.len().saturating_sub(1) / 2).filter(|_| all.len() > 1) else {
            return Pace::none(steps.len());
        };
        let excess = |at: usize| slowness[at].map_or(0.0, |slow| (slow / middle).ln().max(0.0));
        let factor = |at: usize| if known(&steps[at]) { 1.0 } else { (kept(excess(at)) - excess(at)).exp() };
        let slowest = (0..steps.len()).max_by(|&a, &b| excess(a).total_cmp(&excess(b)));
        let apart =
            slowest.filter(|&at| excess(at) > uncertainty().ranks.slow_from.ln() && !known(&steps[at]));
        Pace {
            factors: (0..steps.len()).map(factor).collect(),
            apart: apart.map(|at| (super::number(&steps[at]), excess(at).exp())),
        }
    }

    /// The doubt, where one rank was far slower than the others. `as_recorded` is the step if that was not a slow moment.
    pub(super) fn doubt(&self, step: Nanos, as_recorded: Nanos) -> Option<Doubt> {
        let (rank, times) = self.apart?;
        let text = format!(
            "while profiled, the host of rank {rank} took {times:.2} times as long as the others for the same work: assumed temporary; if \
             permanent, the step is {:.3} ms",
            as_recorded.as_millis(),
        );
        let above = (as_recorded.0 as f64 / step.0.max(1) as f64).ln().max(0.0);
        Some(Doubt { kind: "host", text, below: uncertainty().ranks.disturbed, above, no_estimate: false })
    }
}

/// The same ranks with their hosts slowed by these factors.
pub(super) fn paced<'g>(priced: &[PricedGraph<'g>], factors: &[f64]) -> Vec<PricedGraph<'g>> {
    let slower = |(rank, &factor): (&PricedGraph<'g>, &f64)| {
        let mut rank = rank.clone();
        rank.host.gaps.iter_mut().for_each(|gap| *gap = scale(*gap, factor));
        rank
    };
    priced.iter().zip(factors).map(slower).collect()
}

/// Part of a logarithm of slowness that is kept: half of it, and nothing of too large a one.
fn kept(excess: f64) -> f64 {
    let ranks = &uncertainty().ranks;
    let (far, apart) = (ranks.slow_from.ln(), ranks.slow_moment.ln());
    let believed = ((apart - excess) / (apart - far)).clamp(0.0, 1.0);
    excess.min(far) * ranks.slow_share * believed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_is_halved_and_far_too_much_is_not_believed() {
        assert!((kept(0.1) - 0.05).abs() < 1e-12);
        assert!(kept(uncertainty().ranks.slow_from.ln()) > kept(1.3f64.ln()));
        assert_eq!(kept(1.7f64.ln()), 0.0);
    }
}
