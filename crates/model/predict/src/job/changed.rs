//! Prediction of a job whose ranks are changed, each by its own rules.

use rayon::prelude::*;
use steptime_rewrite::Rule;

use super::{JobPrediction, RankSet};
use crate::doubt::{self, Doubt};
use crate::error::Error;
use crate::query::{Query, Sides};
use crate::step::Step;
use crate::whatif::{Base, ModifiedStep, PricedStep};

/// A changed rank with its prices.
struct ChangedRank {
    step: Step,
    sides: Sides,
    doubts: Vec<Doubt>,
}

impl RankSet {
    /// Predicts the job's step after changes of its ranks: `rules` has those of each rank, in the order of [`RankSet::steps`]. Kernels of a
    /// rank share its GPU where rules put them on several streams or order the nodes of a CUDA graph; collectives run beside them.
    ///
    /// # Errors
    /// Where a rule does not apply, the query of a rank fails, the interconnect of the GPUs is unknown, or ranks deadlock.
    pub fn predict_changed<'s>(
        &'s self,
        ask: impl Fn(&'s Step) -> Result<Query<'s>, Error> + Sync,
        rules: &[Vec<&dyn Rule>],
    ) -> Result<JobPrediction, Error> {
        let one = |(step, rules): (&'s Step, &Vec<&dyn Rule>)| ChangedRank::price(&ask(step)?, rules);
        let changed: Result<Vec<ChangedRank>, Error> = self.steps.par_iter().zip(rules).map(one).collect();
        let (mut steps, mut sides, mut doubts) = (Vec::new(), Vec::new(), Vec::new());
        for rank in changed? {
            for doubt in rank.doubts {
                if !doubts.contains(&doubt) {
                    doubts.push(doubt);
                }
            }
            steps.push(rank.step);
            sides.push(rank.sides);
        }
        let changed = RankSet::from_steps(self.path.clone(), steps, self.alike.clone())?;
        let changed = RankSet { node: self.node, in_hosts: self.in_hosts, ..changed };
        changed.predict_from_sides(sides, doubts)
    }
}

impl ChangedRank {
    /// Changes and prices the step of a query.
    fn price(query: &Query<'_>, rules: &[&dyn Rule]) -> Result<ChangedRank, Error> {
        let asked = query.what_ifs()?;
        let (of, pricing, base) = asked.parts();
        let edited = ModifiedStep::apply(of, base, rules, &pricing.kernels)?;
        let costed = PricedStep::price(of, &pricing, base, &edited)?;
        let mut doubts = costed.doubts(base, &edited, base.before.step);
        // All other ranks are simulated.
        doubts.retain(|doubt| doubt.kind != "ranks");
        let demands = costed.demands().cloned();
        let sides = Sides { demands, ..sides(costed, base) };
        let graph = edited.scheduled.graph;
        let ranks = u32::try_from(of.ranks).unwrap_or(u32::MAX);
        let step = of.as_rank(super::number(of), ranks, graph, of.meta.clone().unwrap_or_default());
        Ok(ChangedRank { step, sides, doubts })
    }
}

/// The two sides of a changed step, without demands of its kernels.
pub(super) fn sides(costed: PricedStep, base: &Base) -> Sides {
    let spec = base.spec.as_ref();
    let peak = costed.peak;
    let too_large = peak.as_ref().zip(spec).and_then(|(peak, spec)| doubt::memory::doubt(peak, spec));
    let (durations, spread, host) = costed.into_sides();
    Sides {
        durations,
        spread,
        demands: None,
        host,
        slowness: base.slowness,
        unpriced: None,
        peak,
        too_large,
        asked: base.before.asked.clone(),
    }
}
