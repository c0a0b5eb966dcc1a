//! A job assembled from separately priced ranks: predicts its step only, without an interval.

use std::path::Path;

use rayon::prelude::*;
use steptime_cost::PricedGraph;
use steptime_graph::{Job, StepGraph};
use steptime_sim::{Hang, Meetings, WorldTimeline};
use steptime_trace::Nanos;

use super::JobGraphs;
use super::predicted::Collectives;
use super::slowest_host::time_alone;
use crate::error::Error;
use crate::query::{Query, Sides};
use crate::step::Step;

/// A rank with its prices.
pub(crate) struct PricedRank {
    step: Step,
    sides: Sides,
}

/// Step time of an assembled job.
#[derive(Debug, Clone)]
pub(crate) struct AssembledJob {
    /// Time from one step to the next.
    pub step: Nanos,
    /// Step time of each rank if it never waited for another.
    pub alone: Vec<Nanos>,
}

impl PricedRank {
    /// Prices a rank by the query that `ask` makes.
    pub(crate) fn price<E: From<Error>>(
        step: Step,
        ask: impl for<'s> Fn(&'s Step) -> Result<Query<'s>, E>,
    ) -> Result<PricedRank, E> {
        let sides = ask(&step)?.sides()?;
        Ok(PricedRank { step, sides })
    }

    fn priced(&self) -> PricedGraph<'_> {
        let Sides { durations, host, demands, .. } = &self.sides;
        PricedGraph {
            graph: &self.step.graph,
            host: host.clone(),
            durations: durations.clone(),
            demands: demands.clone(),
        }
    }
}

impl AssembledJob {
    /// Simulates the ranks of a job together, in order. `node` is the number of GPUs per node; `path` names the job in errors.
    pub(crate) fn simulate(
        path: &Path,
        ranks: &[&PricedRank],
        node: Option<u32>,
    ) -> Result<AssembledJob, Error> {
        let graphs: Vec<(u32, &StepGraph)> = (0..).zip(ranks.iter().map(|rank| &rank.step.graph)).collect();
        let job = Job::from_ranks(&graphs).map_err(|source| Error::Job { path: path.into(), source })?;
        let crew = JobGraphs {
            numbers: graphs.iter().map(|(number, _)| *number).collect(),
            graphs: graphs.iter().map(|(_, graph)| *graph).collect(),
            job: &job,
        };
        let Some(first) = ranks.first() else { return Err(Error::NoTiming { path: path.into() }) };
        let collectives = Collectives::price(&crew, &first.sides.asked, node)?;
        let hangs = |source: Hang| Error::Hang { path: path.into(), source };
        let priced: Vec<PricedGraph<'_>> = ranks.iter().map(|rank| rank.priced()).collect();
        let meetings = Meetings { job: &job, moving: &collectives.moving };
        let world = WorldTimeline::simulate(&priced, meetings).map_err(hangs)?;
        let one = |rank: usize| time_alone(&priced[rank], &job, rank, |at| world.rendezvous[at].moving);
        let alone = (0..priced.len()).into_par_iter().map(one).collect();
        Ok(AssembledJob { step: world.period, alone })
    }
}
