//! Prediction of a job's step.

use rayon::prelude::*;
use steptime_cost::network::Topology;
use steptime_cost::{HostCosts, PricedGraph, Process};
use steptime_graph::{Job, Rendezvous, RendezvousId, TiVec};
use steptime_sim::world::{self, Parts, Passage};
use steptime_sim::{Hang, Idle, Meetings, WorldTimeline};
use steptime_step::Peak;
use steptime_trace::Nanos;

use super::doubts::{has_no_size, replay_doubt};
use super::host_pace::{Pace, paced};
use super::slowest_host::{SlowestHost, time_alone};
use super::{JobGraphs, RankSet, call};
use crate::doubt::{self, Doubt};
use crate::error::Error;
use crate::predict::{about, next_run, scale};
use crate::query::{Query, Sides};
use crate::query_echo::QueryEcho;
use crate::shipped_host::own_constants;
use crate::step::Step;
use crate::uncertainty::uncertainty;

/// Name of hosts with their own times.
const OWN: &str = "own";

/// A predicted step of a job.
#[derive(Debug, Clone)]
pub struct JobPrediction {
    /// Time from one step to the next.
    pub step: Nanos,
    /// Interval of the step time with probability [`crate::INTERVAL_LEVEL`].
    pub interval: [Nanos; 2],
    /// Doubts about it; the interval is wider by these.
    pub doubts: Vec<Doubt>,
    /// Times of all events.
    pub world: WorldTimeline,
    /// Time of each rendezvous once all ranks have arrived.
    pub moving: TiVec<RendezvousId, Nanos>,
    /// Source of these times: `measured`, or the GPUs whose collectives are modelled.
    pub collectives: String,
    /// Predictions of each rank.
    pub ranks: Vec<RankPrediction>,
    /// The critical path over all ranks.
    pub path: Vec<Passage>,
    /// Rank with the slowest host, where hosts' times are not each rank's own; `None` where they are, or where hosts do not affect the step.
    pub slowest: Option<SlowestHost>,
    /// Replay of the recorded steps with the profiler's cost left in; `None` where fewer than two were recorded by all.
    pub replay: Option<steptime_sim::Replay>,
    /// Settings of the prediction.
    pub asked: QueryEcho,
}

/// Time of each rendezvous once all ranks have arrived, and half-widths of 90 % (logarithm).
pub(super) struct Collectives {
    pub(super) moving: TiVec<RendezvousId, Nanos>,
    /// Source of the times: `measured`, or the GPUs whose collectives are modelled.
    source: String,
    half_widths: TiVec<RendezvousId, f64>,
}

impl Collectives {
    /// Times of collectives once all ranks have arrived, and their uncertainty. `node` is the number of GPUs per node.
    pub(super) fn price(
        crew: &JobGraphs<'_>,
        asked: &QueryEcho,
        node: Option<u32>,
    ) -> Result<Collectives, Error> {
        let Some(device) = &asked.device else {
            let moving = crew.job.moving(&crew.graphs).into_iter();
            let moving: TiVec<RendezvousId, Nanos> = moving.map(Option::unwrap_or_default).collect();
            let half_widths = vec![uncertainty().kernels.measured; moving.len()].into();
            return Ok(Collectives { half_widths, moving, source: asked.kernels.clone() });
        };
        let topology = topology(&device.name, node)?;
        let recorded = crew.job.moving(&crew.graphs);
        let priced = crew.job.rendezvous.iter().zip(recorded).map(|(met, recorded)| {
            // For a collective of unknown size, the recorded time is the best guess.
            match recorded.filter(|_| has_no_size(met)) {
                Some(recorded) => (recorded, uncertainty().collectives.unknown_size),
                None => {
                    let price = topology.in_step(&call(met));
                    (price.time, price.half_width)
                }
            }
        });
        let (moving, half_widths): (Vec<Nanos>, Vec<f64>) = priced.unzip();
        let source = asked.kernels.clone();
        Ok(Collectives { moving: moving.into(), half_widths: half_widths.into(), source })
    }
}

/// Interconnect of GPUs of a name: with `node` GPUs per node, else with the usual number.
fn topology(device: &str, node: Option<u32>) -> Result<Topology, Error> {
    let usual = Topology::find(device).map_err(|source| Error::Network { source })?;
    Ok(match node {
        Some(gpus) => usual.in_nodes_of(gpus),
        None => usual,
    })
}

/// One rank of a predicted job.
#[derive(Debug, Clone)]
pub struct RankPrediction {
    /// Time of its device, by activity.
    pub parts: Parts,
    /// Idle time of its device by cause.
    pub idle: Idle,
    /// Its step time if it never waited for another rank.
    pub alone: Nanos,
    /// Its time on the job's critical path.
    pub critical: Nanos,
    /// Number of collectives at which it arrives last.
    pub last: usize,
    /// Number of collectives in which it meets other ranks.
    pub meets: usize,
    /// Its own host gaps relative to those of the shipped profile.
    pub slowness: Option<f64>,
    /// Peak device memory of its tensors; `None` where unknown.
    pub peak: Option<Peak>,
}

impl RankSet {
    /// Predicts the job's step from the ranks' own times, the profiler's cost taken off.
    ///
    /// # Errors
    /// Fails where its ranks deadlock.
    pub fn predict(&self) -> Result<JobPrediction, Error> {
        self.predict_as(|step| Ok(step.predict()))
    }

    /// Predicts the job's step with a query of each rank. Where a GPU is given, collectives are priced for the usual node of such GPUs.
    ///
    /// # Errors
    /// Fails where the query of a rank fails, the interconnect of GPUs of that name is unknown, or ranks deadlock.
    pub fn predict_as<'s, E: From<Error> + Send>(
        &'s self,
        ask: impl Fn(&'s Step) -> Result<Query<'s>, E> + Sync,
    ) -> Result<JobPrediction, E> {
        let sides: Result<Vec<Sides>, E> =
            self.steps.par_iter().map(|step| Ok(ask(step)?.sides()?)).collect();
        let sides = sides?;
        let collectives = Collectives::price(&self.crew(), &sides[0].asked, self.node)?;
        let predicted = self.predicted(sides, collectives, Vec::new());
        Ok(predicted.map_err(|hang| self.hang_error(hang))?)
    }

    /// Predicts a job of steps made from one, from their prices and their doubts. Collectives are priced for nodes of the given
    /// number of GPUs, else for the usual node of the GPUs of the query, or of those that the step was recorded on.
    pub(crate) fn predict_from_sides(
        &self,
        sides: Vec<Sides>,
        doubts: Vec<Doubt>,
    ) -> Result<JobPrediction, Error> {
        let asked = &sides[0].asked;
        let recorded = || self.steps.first().and_then(|step| step.graph.device.clone());
        let device = asked.device.as_ref().map(|device| device.name.clone()).or_else(recorded);
        let device = device.unwrap_or_default();
        let mut collectives = self.priced(&device)?;
        // None of the collectives was recorded, even where kernels were.
        collectives.source = if asked.device.is_some() { asked.kernels.clone() } else { device };
        self.predicted(sides, collectives, doubts).map_err(|hang| self.hang_error(hang))
    }

    /// Prices of collectives among GPUs of a name, in nodes of the given size.
    fn priced(&self, device: &str) -> Result<Collectives, Error> {
        let topology = topology(device, self.node)?;
        let price = |met: &Rendezvous| {
            let price = topology.in_step(&call(met));
            (price.time, price.half_width)
        };
        let (moving, half_widths): (Vec<Nanos>, Vec<f64>) = self.job.rendezvous.iter().map(price).unzip();
        let source = device.to_owned();
        Ok(Collectives { moving: moving.into(), half_widths: half_widths.into(), source })
    }

    /// The error of a hang, with rank numbers for indices.
    fn hang_error(&self, hang: Hang) -> Error {
        let numbers = self.crew().numbers;
        let numbered = |places: Vec<usize>| places.into_iter().map(|place| numbers[place] as usize).collect();
        let waiting = hang.waiting.into_iter().map(|(at, places)| (at, numbered(places))).collect();
        Error::Hang { path: self.path.clone(), source: Hang { waiting } }
    }

    fn predicted(
        &self,
        sides: Vec<Sides>,
        collectives: Collectives,
        more: Vec<Doubt>,
    ) -> Result<JobPrediction, Hang> {
        let asked = sides[0].asked.clone();
        let spread = sides.iter().map(|rank| rank.spread).fold(0.0, f64::max);
        let slowness: Vec<Option<f64>> = sides.iter().map(|rank| rank.slowness).collect();
        let unpriced = sides.iter().find_map(|rank| rank.unpriced.clone());
        let peaks: Vec<Option<Peak>> = sides.iter().map(|rank| rank.peak).collect();
        let too_large = self.steps.iter().zip(&sides).find_map(|(step, rank)| {
            let doubt = rank.too_large.clone()?;
            Some(Doubt { text: format!("rank {}: {}", super::number(step), doubt.text), ..doubt })
        });
        let recorded: Vec<PricedGraph<'_>> = self
            .steps
            .iter()
            .zip(sides)
            .map(|(step, Sides { durations, host, demands, .. })| PricedGraph {
                graph: &step.graph,
                host,
                durations,
                demands,
            })
            .collect();
        // Steps made from one all have its pace.
        let own = asked.host == OWN && self.steps.iter().all(|step| step.graph.is_measured());
        let mut pace = if own { Pace::measure(&self.steps) } else { Pace::none(self.steps.len()) };
        let slowest = if own { None } else { self.slowest(&recorded, &collectives.moving) };
        if let Some(slowest) = slowest {
            pace.factors[slowest.rank] = slowest.times;
        }
        let priced = paced(&recorded, &pace.factors);
        let meetings = Meetings { job: &self.job, moving: &collectives.moving };
        let world = WorldTimeline::simulate(&priced, meetings)?;
        let step = world.period;
        let as_recorded = match pace.apart {
            Some(_) => WorldTimeline::simulate(&recorded, meetings)?.period,
            None => step,
        };
        let replay = self.replay()?;
        let doubts = [
            too_large,
            self.missing(),
            self.cut(),
            self.several_runs_doubt(),
            self.sizes_unknown(&asked),
            self.single_step_doubt(),
            unpriced,
            pace.doubt(step, as_recorded),
            replay.as_ref().and_then(replay_doubt),
            self.misses(&priced, step),
        ];
        let doubts: Vec<Doubt> = doubts.into_iter().flatten().chain(more).collect();
        // The rank whose device idles most has the host that determines the step.
        let next = world.ranks.iter().map(next_run).fold(0.0, f64::max);
        let next = slowest.map_or(next, |slowest| next.hypot(slowest.half_width));
        let sides = interval(&priced, &self.job, &collectives, spread, step, next)?;
        let interval = doubt::widened(&doubts, step, sides);
        let path = world::path(&self.crew().graphs, &self.job, &world);
        let mut ranks = self.ranks(&priced, &world, &path, &slowness);
        ranks.iter_mut().zip(peaks).for_each(|(rank, peak)| rank.peak = peak);
        let Collectives { moving, source: collectives, .. } = collectives;
        Ok(JobPrediction {
            step,
            interval,
            doubts,
            world,
            moving,
            collectives,
            ranks,
            path,
            slowest,
            replay,
            asked,
        })
    }

    /// Summarises each rank of a simulated step.
    fn ranks(
        &self,
        priced: &[PricedGraph<'_>],
        world: &WorldTimeline,
        path: &[Passage],
        slowness: &[Option<f64>],
    ) -> Vec<RankPrediction> {
        let lates: Vec<usize> = self
            .job
            .rendezvous
            .iter_enumerated()
            .filter(|(_, met)| met.members.len() > 1)
            .map(|(at, met)| met.members[world.rendezvous[at].last()].rank)
            .collect();
        let has = |met: &Rendezvous, rank: usize| met.members.iter().any(|member| member.rank == rank);
        let one = |rank: usize| {
            let graph = &self.steps[rank].graph;
            let on_path = path.iter().filter(|passage| passage.rank == rank && passage.meets.is_none());
            RankPrediction {
                parts: Parts::measure(world, &self.job, rank, graph),
                idle: Idle::measure(graph, &world.ranks[rank]),
                alone: time_alone(&priced[rank], &self.job, rank, |at| world.rendezvous[at].moving),
                critical: on_path.map(|passage| passage.stretch.to - passage.stretch.from).sum(),
                last: lates.iter().filter(|&&late| late == rank).count(),
                meets: self
                    .job
                    .rendezvous
                    .iter()
                    .filter(|met| met.members.len() > 1 && has(met, rank))
                    .count(),
                slowness: slowness[rank],
                peak: None,
            }
        };
        (0..self.steps.len()).into_par_iter().map(one).collect()
    }

    /// Replays the recorded steps.
    fn replay(&self) -> Result<Option<steptime_sim::Replay>, Hang> {
        let profiled: Vec<PricedGraph<'_>> = self
            .steps
            .par_iter()
            .map(|step| {
                let (_, coupling) = own_constants(Process::Profiled);
                PricedGraph::measured(&step.graph, HostCosts::profiled(&step.graph, &coupling))
            })
            .collect();
        world::replay_recorded(&profiled, &self.job)
    }
}

/// Interval of the step with hosts, kernels and collectives of all ranks at either end of their own intervals, widened by the variation of
/// the next run.
fn interval(
    priced: &[PricedGraph<'_>],
    job: &Job,
    collectives: &Collectives,
    device: f64,
    step: Nanos,
    next_run: f64,
) -> Result<[Nanos; 2], Hang> {
    let spread = priced.iter().map(|rank| rank.host.spread).fold(0.0, f64::max);
    let scaled = |sign: f64| {
        let mut others = paced(priced, &vec![(sign * spread).exp(); priced.len()]);
        let kernels = (sign * device).exp();
        for rank in &mut others {
            rank.durations.iter_mut().for_each(|time| *time = scale(*time, kernels));
        }
        let all = collectives.moving.iter().zip(&collectives.half_widths);
        let moving: TiVec<RendezvousId, Nanos> =
            all.map(|(time, half_width)| scale(*time, (sign * half_width).exp())).collect();
        Ok(WorldTimeline::simulate(&others, Meetings { job, moving: &moving })?.period)
    };
    let (low, high) = (scaled(-1.0)?, scaled(1.0)?);
    Ok(about(step, [low, high], next_run))
}
