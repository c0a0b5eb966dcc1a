//! Improvement of a plan by simulating its neighbours, which differ by one change.
//!
//! Loads of tables do not add up: hosts run ahead, ranks wait for each other, exchanges are hidden. So the whole job is simulated with each of the
//! most promising changes, and the best is kept, as long as one makes the step shorter. A rank with unchanged work is
//! not priced again.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use steptime_eager::{Model, TableLayout};
use steptime_shard::{Plan, Problem, neighbours};
use steptime_trace::Nanos;

use super::{SearchConstraints, homes, on};
use crate::error::Error;
use crate::input;
use crate::job::{AssembledJob, PricedRank};
use crate::query::QueryFor;
use crate::step::{Choice, Step};

/// Maximum number of simulated jobs.
const MOST: usize = 48;
/// Maximum number of neighbours generated: those to simulate, and those already simulated.
const ENOUGH: usize = 2 * MOST + 1;
/// Number of neighbours simulated at a time, of which the best is kept.
const AT_ONCE: usize = 8;

/// Result of the improvement.
pub(super) struct Refinement {
    /// Placement of tables.
    pub homes: Vec<TableLayout>,
    /// All simulated plans, with their steps.
    pub steps: Vec<(Plan, Nanos)>,
    /// Number of changes kept.
    pub changes: usize,
}

/// Improves a plan.
pub(super) fn refine<A: QueryFor>(
    model: &Model,
    wanted: &SearchConstraints<'_>,
    problem: &Problem,
    plan: Plan,
    queries: &A,
) -> Result<Refinement, A::Error> {
    let mut known = PriceCache { wanted, queries, ranks: BTreeMap::new() };
    let placed = |plan: &Plan| homes(model, wanted, problem, plan);
    let (mut best, mut plan) = (known.all(vec![on(model, wanted, Some(placed(&plan)))?])?.remove(0), plan);
    let mut steps = vec![(plan.clone(), best.step)];
    let mut changes = 0;
    let mut left = neighbours(problem, &plan, &best.alone, ENOUGH).into_iter();
    while steps.len() <= MOST {
        let next: Vec<Plan> = left
            .by_ref()
            .filter(|plan| steps.iter().all(|(tried, _)| tried != plan))
            .take(AT_ONCE.min(1 + MOST - steps.len()))
            .collect();
        if next.is_empty() {
            break;
        }
        let models: Result<Vec<Model>, Error> =
            next.iter().map(|plan| on(model, wanted, Some(placed(plan)))).collect();
        let found = known.all(models?)?;
        steps.extend(next.iter().cloned().zip(found.iter().map(|job| job.step)));
        let first = found.into_iter().zip(next).min_by_key(|(job, _)| job.step);
        if let Some((job, shorter)) = first.filter(|(job, _)| job.step < best.step) {
            (best, plan) = (job, shorter);
            changes += 1;
            left = neighbours(problem, &plan, &best.alone, ENOUGH).into_iter();
        }
    }
    Ok(Refinement { homes: placed(&plan), steps, changes })
}

/// Key of a rank's work, and the priced rank.
type PricedWork = (Vec<i64>, Arc<PricedRank>);

/// Priced ranks, by the key of their work.
struct PriceCache<'a, A> {
    wanted: &'a SearchConstraints<'a>,
    queries: &'a A,
    ranks: BTreeMap<Vec<i64>, Arc<PricedRank>>,
}

impl<A: QueryFor> PriceCache<'_, A> {
    fn all(&mut self, models: Vec<Model>) -> Result<Vec<AssembledJob>, A::Error> {
        let works: Vec<Vec<Vec<i64>>> =
            models.iter().map(|model| (0..model.gpus()).map(|rank| model.work(rank)).collect()).collect();
        let mut new: BTreeMap<&Vec<i64>, (&Model, u32)> = BTreeMap::new();
        for (model, works) in models.iter().zip(&works) {
            for (rank, work) in (0..).zip(works) {
                if !self.ranks.contains_key(work) {
                    new.entry(work).or_insert((model, rank));
                }
            }
        }
        let priced = |(work, (model, rank)): (&Vec<i64>, (&Model, u32))| {
            let input = input::described(self.wanted.path, model, &[rank]);
            let step = Step::from_recordings(self.wanted.path, &input.recordings, &Choice::default())?;
            Ok((work.clone(), Arc::new(PricedRank::price(step, |step| self.queries.query(step))?)))
        };
        let priced: Result<Vec<PricedWork>, A::Error> = new.into_par_iter().map(priced).collect();
        self.ranks.extend(priced?);
        let job = |(model, works): (&Model, &Vec<Vec<i64>>)| {
            let ranks: Vec<&PricedRank> =
                works.iter().filter_map(|work| self.ranks.get(work).map(Arc::as_ref)).collect();
            let node = model.nodes().map(|nodes| model.gpus() / nodes.max(1));
            Ok(AssembledJob::simulate(self.wanted.path, &ranks, node)?)
        };
        models.par_iter().zip(&works).map(job).collect()
    }
}
