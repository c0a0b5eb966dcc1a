//! When ranks came to a rendezvous as recorded, and how long they waited there.

use steptime_trace::Nanos;

use super::{Job, Rendezvous};
use crate::graph::StepGraph;
use crate::ids::{RendezvousId, StepId};
use crate::samples::median;

/// One rendezvous of one step, as recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Met {
    /// Each member's, in their order.
    pub arrivals: Vec<Arrival>,
    /// How long it took once all were there.
    pub moving: Nanos,
}

/// A rank at a rendezvous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it came, by its own clock.
    pub at: Nanos,
    /// How long it waited for others.
    pub waited: Nanos,
}

impl Met {
    /// The place among the members of the one that came last.
    #[must_use]
    pub fn last(&self) -> usize {
        let least = self.arrivals.iter().enumerate().min_by_key(|(_, arrival)| arrival.waited);
        least.map_or(0, |(place, _)| place)
    }
}

impl Job {
    /// The steps that all ranks recorded, by their place in each rank's samples: those of the same number, or where ranks
    /// count differently, all from the last one on backwards.
    #[must_use]
    pub fn common_steps(ranks: &[&StepGraph]) -> Vec<Vec<StepId>> {
        let Some(first) = ranks.first() else { return Vec::new() };
        let numbers =
            |graph: &StepGraph| -> Vec<u32> { graph.steps.iter().map(|step| step.number).collect() };
        let all: Vec<Vec<u32>> = ranks.iter().map(|graph| numbers(graph)).collect();
        let place =
            |own: &[u32], number: u32| own.iter().position(|&other| other == number).map(StepId::from);
        let of_number =
            |&number: &u32| all.iter().map(|own| place(own, number)).collect::<Option<Vec<StepId>>>();
        let same: Vec<Vec<StepId>> = all[0].iter().filter_map(of_number).collect();
        if !same.is_empty() {
            return same;
        }
        let least = ranks.iter().map(|graph| graph.samples.steps().len()).min().unwrap_or(0);
        let least = least.min(first.samples.steps().len());
        let from_end = |back: usize| {
            ranks.iter().map(|graph| StepId::from(graph.samples.steps().len() - back)).collect()
        };
        (1..=least).rev().map(from_end).collect()
    }

    /// A rendezvous as it was in a step: `steps` has that of each rank. `None` where a rank's part was not recorded.
    ///
    /// All ranks leave together, so the one whose part is shortest came last: it waited for nobody. No clock is compared.
    #[must_use]
    pub fn met(&self, at: RendezvousId, ranks: &[&StepGraph], steps: &[StepId]) -> Option<Met> {
        let parts = |rendezvous: &Rendezvous| -> Option<Vec<(Nanos, Nanos)>> {
            let part = |member: &super::Member| {
                let (samples, step) = (&ranks[member.rank].samples, steps[member.rank]);
                Some((
                    samples.activity_start(step, member.activity)?,
                    samples.activity_duration(step, member.activity)?,
                ))
            };
            rendezvous.members.iter().map(part).collect()
        };
        let parts = parts(&self.rendezvous[at])?;
        let moving = parts.iter().map(|&(_, took)| took).min()?;
        let arrivals = parts.iter().map(|&(at, took)| Arrival { at, waited: took - moving }).collect();
        Some(Met { arrivals, moving })
    }

    /// How long each rendezvous takes once all are there: the median over the steps; `None` where it was not recorded.
    #[must_use]
    pub fn moving(&self, ranks: &[&StepGraph]) -> Vec<Option<Nanos>> {
        let steps = Job::common_steps(ranks);
        let of = |at: RendezvousId| {
            let mut all: Vec<Nanos> =
                steps.iter().filter_map(|steps| Some(self.met(at, ranks, steps)?.moving)).collect();
            median(&mut all)
        };
        self.rendezvous.keys().map(of).collect()
    }
}
