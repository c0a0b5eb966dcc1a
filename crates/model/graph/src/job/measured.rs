//! Recorded arrival times of ranks at a rendezvous, and their waiting times.

use steptime_trace::Nanos;

use super::{Job, Rendezvous};
use crate::graph::StepGraph;
use crate::ids::{RendezvousId, StepId};
use crate::samples::median;

/// One rendezvous of one step, as recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RendezvousTimes {
    /// Arrivals of the members, in their order.
    pub arrivals: Vec<Arrival>,
    /// Duration from the arrival of the last rank to the end.
    pub moving: Nanos,
}

/// Arrival of a rank at a rendezvous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Arrival time, by the rank's own clock.
    pub at: Nanos,
    /// Waiting time for other ranks.
    pub waited: Nanos,
}

impl RendezvousTimes {
    /// Returns the index of the member that arrived last.
    #[must_use]
    pub fn last(&self) -> usize {
        let least = self.arrivals.iter().enumerate().min_by_key(|(_, arrival)| arrival.waited);
        least.map_or(0, |(place, _)| place)
    }
}

impl Job {
    /// Returns the steps that all ranks recorded, as indices into each rank's samples: steps of the same number, or if the numbers of the ranks
    /// have none in common, steps matched backwards from the last one.
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

    /// Returns the recorded times of a rendezvous in a step; `steps` has the step of each rank. `None` if a rank's part was not recorded.
    ///
    /// All ranks leave together, so the rank with the shortest part arrived last and did not wait. Clocks of ranks are not compared.
    #[must_use]
    pub fn rendezvous_times(
        &self,
        at: RendezvousId,
        ranks: &[&StepGraph],
        steps: &[StepId],
    ) -> Option<RendezvousTimes> {
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
        Some(RendezvousTimes { arrivals, moving })
    }

    /// Returns the duration of each rendezvous after the last arrival: the median over the steps; `None` if it was not recorded.
    #[must_use]
    pub fn moving(&self, ranks: &[&StepGraph]) -> Vec<Option<Nanos>> {
        let steps = Job::common_steps(ranks);
        let of = |at: RendezvousId| {
            let mut all: Vec<Nanos> = steps
                .iter()
                .filter_map(|steps| Some(self.rendezvous_times(at, ranks, steps)?.moving))
                .collect();
            median(&mut all)
        };
        self.rendezvous.keys().map(of).collect()
    }
}
