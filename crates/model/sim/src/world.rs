//! A world of ranks: each runs its own step, and none leaves a collective before all have arrived.

mod critical;
mod durations_beside_collectives;
mod parts;
mod replay;

use std::collections::VecDeque;

use steptime_cost::PricedGraph;
use steptime_graph::{ActivityId, Job, MarkId, Member, RendezvousId, TiSlice, TiVec};
use steptime_trace::Nanos;

pub use self::critical::{Passage, path};
use self::durations_beside_collectives::LearntDurations;
pub use self::parts::{Parts, Runs, Span, split};
pub use self::replay::replay_recorded;
use crate::engine::{Engine, RankProgress};
use crate::period::Period;
use crate::timeline::Timeline;

/// A job's step in its steady state.
#[derive(Debug, Clone)]
pub struct WorldTimeline {
    /// Time from one step to the next: the same for all ranks if they meet at all.
    pub period: Nanos,
    /// Timeline of each rank, relative to its own first mark.
    pub ranks: Vec<Timeline>,
    /// Time of the first mark of each rank, relative to that of the first rank.
    pub offsets: Vec<Nanos>,
    /// Meetings of ranks, relative to the first mark of the first rank.
    pub rendezvous: TiVec<RendezvousId, Meeting>,
    /// Number of steps until the period settled.
    pub steps: usize,
}

/// A rendezvous in simulated time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meeting {
    /// Arrival of each member, in their order.
    pub arrivals: Vec<Nanos>,
    /// Index of the member that releases all; if `None`, the last one does.
    pub root: Option<usize>,
    /// Duration of each member's transfer once it is released.
    pub moving: Nanos,
}

impl Meeting {
    /// Returns the index of the member that releases a member: itself, if it does not wait.
    #[must_use]
    pub fn held_by(&self, place: usize) -> usize {
        let holds = self.root.unwrap_or_else(|| self.last());
        if self.arrivals[holds] > self.arrivals[place] { holds } else { place }
    }

    /// Returns the time at which a member is released, and its data moves.
    #[must_use]
    pub fn release_time(&self, place: usize) -> Nanos {
        self.arrivals[self.held_by(place)]
    }

    /// Returns the index of the member that arrives last; the first of several.
    #[must_use]
    pub fn last(&self) -> usize {
        let last = self.arrivals.iter().enumerate().max_by_key(|&(place, at)| (at, std::cmp::Reverse(place)));
        last.map_or(0, |(place, _)| place)
    }

    /// Returns the time that a member waits for others.
    #[must_use]
    pub fn waited(&self, place: usize) -> Nanos {
        self.release_time(place) - self.arrivals[place]
    }
}

/// Ranks that wait for each other for ever.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ranks wait for each other for ever: {}", words(waiting))]
pub struct Hang {
    /// Places of the wait: the rendezvous, and the ranks (by their indices) that have arrived.
    pub waiting: Vec<(RendezvousId, Vec<usize>)>,
}

fn words(waiting: &[(RendezvousId, Vec<usize>)]) -> String {
    if waiting.is_empty() {
        return "a thread or stream of one rank waits for its own later work".to_owned();
    }
    let each = |(at, ranks): &(RendezvousId, Vec<usize>)| {
        let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
        format!("at collective {} of the step: ranks {}", at.0 + 1, ranks.join(", "))
    };
    waiting.iter().map(each).collect::<Vec<String>>().join("; ")
}

/// Meetings of a job's ranks, and their durations.
#[derive(Debug, Clone, Copy)]
pub struct Meetings<'j> {
    pub job: &'j Job,
    /// Duration of each rendezvous once all have arrived.
    pub moving: &'j TiSlice<RendezvousId, Nanos>,
}

/// State between two steps.
struct World<'g> {
    job: &'g Job,
    engines: Vec<Engine<'g>>,
    arrived: TiVec<RendezvousId, Vec<Option<Nanos>>>,
    moving: TiVec<RendezvousId, Nanos>,
}

impl WorldTimeline {
    /// Simulates the steps of all ranks one after the other until their period settles.
    ///
    /// # Errors
    /// If ranks wait for each other for ever.
    pub fn simulate(priced: &[PricedGraph<'_>], meetings: Meetings<'_>) -> Result<WorldTimeline, Hang> {
        let meets = meets(priced, meetings.job);
        let mut world = World::new(priced, &meets, meetings.job);
        let mut besides: Vec<Option<LearntDurations<'_>>> =
            priced.iter().zip(&meets).map(|(rank, meets)| LearntDurations::build(rank, meets)).collect();
        let mut period = Period::begin(world.progress());
        loop {
            let times: Vec<Times<'_>> =
                priced.iter().zip(&besides).map(|(rank, beside)| Times::new(rank, beside.as_ref())).collect();
            world.step(&times, meetings.moving)?;
            let learning = besides.iter_mut().zip(&world.engines);
            learning.for_each(|(beside, engine)| beside.iter_mut().for_each(|own| own.learn(engine)));
            if period.is_settled(world.progress(), || world.completion()) {
                break;
            }
        }
        let (steps, period) = (period.steps(), period.get());
        Ok(world.timeline(period, steps))
    }
}

/// Returns for each rank the rendezvous of its activities.
fn meets(priced: &[PricedGraph<'_>], job: &Job) -> Vec<TiVec<ActivityId, Option<RendezvousId>>> {
    let mut all: Vec<TiVec<ActivityId, Option<RendezvousId>>> =
        priced.iter().map(|rank| vec![None; rank.graph.activities.len()].into()).collect();
    for (at, rendezvous) in job.rendezvous.iter_enumerated() {
        for member in &rendezvous.members {
            all[member.rank][member.activity] = Some(at);
        }
    }
    all
}

/// Returns the arrival of the last of all; `None` before that.
fn last(arrived: &[Option<Nanos>]) -> Option<Nanos> {
    arrived.iter().copied().try_fold(Nanos(i64::MIN), |last, when| Some(last.max(when?)))
}

/// Queue of ranks that may continue.
struct Line {
    ready: VecDeque<usize>,
    queued: Vec<bool>,
}

impl Line {
    fn new(ranks: usize) -> Line {
        Line { ready: (0..ranks).collect(), queued: vec![true; ranks] }
    }

    fn next(&mut self) -> Option<usize> {
        let rank = self.ready.pop_front()?;
        self.queued[rank] = false;
        Some(rank)
    }

    fn join(&mut self, rank: usize) {
        if !std::mem::replace(&mut self.queued[rank], true) {
            self.ready.push_back(rank);
        }
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }
}

/// The times of one rank's step.
#[derive(Clone, Copy)]
struct Times<'t> {
    gaps: &'t TiSlice<MarkId, Nanos>,
    durations: &'t TiSlice<ActivityId, Nanos>,
}

impl<'t> Times<'t> {
    fn new(priced: &'t PricedGraph<'_>, beside: Option<&'t LearntDurations<'_>>) -> Times<'t> {
        let durations = beside.map_or(&*priced.durations, LearntDurations::durations);
        Times { gaps: &priced.host.gaps, durations }
    }
}

impl<'g> World<'g> {
    /// Creates a world of ranks before their first step.
    fn new(
        priced: &'g [PricedGraph<'_>],
        meets: &'g [TiVec<ActivityId, Option<RendezvousId>>],
        job: &'g Job,
    ) -> World<'g> {
        let engines = priced.iter().zip(meets).map(|(rank, meets)| Engine::among(rank, meets)).collect();
        let arrived = job.rendezvous.iter().map(|at| vec![None; at.members.len()]).collect();
        World { job, engines, arrived, moving: vec![Nanos::ZERO; job.rendezvous.len()].into() }
    }

    /// Runs one step of every rank, with the given times.
    fn step(&mut self, times: &[Times<'_>], moving: &TiSlice<RendezvousId, Nanos>) -> Result<(), Hang> {
        self.engines.iter_mut().for_each(Engine::begin_step);
        self.arrived.iter_mut().for_each(|all| all.fill(None));
        let mut line = Line::new(self.engines.len());
        let mut reached = vec![RankProgress::Others; self.engines.len()];
        loop {
            while let Some(rank) = line.next() {
                reached[rank] = self.go_on(rank, false, times[rank], moving, &mut line);
            }
            // A thread may wait for other ranks while a second one launches what these wait for.
            for rank in 0..self.engines.len() {
                if reached[rank] == RankProgress::Others && line.is_empty() {
                    reached[rank] = self.go_on(rank, true, times[rank], moving, &mut line);
                }
            }
            if line.is_empty() {
                break;
            }
        }
        let is_over = |all: &Vec<Option<Nanos>>| all.iter().all(Option::is_some);
        if reached.iter().all(|&rank| rank == RankProgress::End) && self.arrived.iter().all(is_over) {
            return Ok(());
        }
        Err(self.hang())
    }

    /// Runs a rank as far as possible; ranks released by its arrivals are queued.
    fn go_on(
        &mut self,
        rank: usize,
        all: bool,
        times: Times<'_>,
        moving: &TiSlice<RendezvousId, Nanos>,
        line: &mut Line,
    ) -> RankProgress {
        let reached = self.engines[rank].go_on(times.gaps, times.durations, all);
        for (at, activity, when) in self.engines[rank].arrived() {
            let rendezvous = &self.job.rendezvous[at];
            let own = Member { rank, activity };
            let Some(place) = rendezvous.members.iter().position(|&member| member == own) else { continue };
            let arrived = &mut self.arrived[at];
            arrived[place] = Some(when);
            self.moving[at] = moving[at];
            // Released now: by the last one or by the root all that have arrived, after the root only the arriving member.
            let (from, all) = match rendezvous.root() {
                None => (last(arrived), true),
                Some(root) => (arrived[root], root == place),
            };
            let Some(from) = from else { continue };
            for (other, member) in
                rendezvous.members.iter().enumerate().filter(|&(other, _)| all || other == place)
            {
                let Some(came) = arrived[other] else { continue };
                self.engines[member.rank].leave(member.activity, came.max(from) + moving[at]);
                line.join(member.rank);
            }
        }
        reached
    }

    fn hang(&self) -> Hang {
        let there = |(at, all): (RendezvousId, &Vec<Option<Nanos>>)| {
            let members = &self.job.rendezvous[at].members;
            let there: Vec<usize> = members
                .iter()
                .zip(all)
                .filter(|(_, when)| when.is_some())
                .map(|(member, _)| member.rank)
                .collect();
            (!there.is_empty() && there.len() < members.len()).then_some((at, there))
        };
        Hang { waiting: self.arrived.iter_enumerated().filter_map(there).collect() }
    }

    fn progress(&self) -> Vec<Nanos> {
        self.engines.iter().flat_map(Engine::progress).collect()
    }

    fn completion(&self) -> Nanos {
        self.engines.iter().map(Engine::completion).max().unwrap_or(Nanos::ZERO)
    }

    fn timeline(self, period: Nanos, steps: usize) -> WorldTimeline {
        let begins: Vec<Nanos> = self.engines.iter().map(Engine::begin).collect();
        let zero = begins.first().copied().unwrap_or(Nanos::ZERO);
        let meeting = |(at, all): (RendezvousId, &Vec<Option<Nanos>>)| Meeting {
            arrivals: all.iter().map(|when| when.map_or(Nanos::ZERO, |when| when - zero)).collect(),
            root: self.job.rendezvous[at].root(),
            moving: self.moving[at],
        };
        let rendezvous = self.arrived.iter_enumerated().map(meeting).collect();
        let ranks =
            self.engines.into_iter().map(|engine| Timeline::from_engine(engine, period, steps)).collect();
        WorldTimeline {
            period,
            ranks,
            offsets: begins.into_iter().map(|begin| begin - zero).collect(),
            rendezvous,
            steps,
        }
    }
}
