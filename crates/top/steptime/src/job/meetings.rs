//! The collectives of a job's steps as recorded.

use steptime_graph::{Met, RendezvousId, StepId, TiVec, median};
use steptime_trace::Nanos;

use super::Crew;

/// A collective of the step as recorded.
#[derive(Debug, Clone)]
pub struct CollectiveMet {
    /// Which.
    pub at: RendezvousId,
    /// How long it took once all were there: the median.
    pub moving: Nanos,
    /// How long each member waited for others: the mean.
    pub waited: Vec<Nanos>,
    /// In how many steps each member came last.
    pub last: Vec<usize>,
}

/// Every rendezvous of every common step; `None` where a rank's part was not recorded.
pub(super) struct Meetings {
    of: Vec<TiVec<RendezvousId, Option<Met>>>,
}

impl Meetings {
    pub(super) fn of(crew: &Crew<'_>, common: &[Vec<StepId>]) -> Meetings {
        let of_step = |step: &Vec<StepId>| {
            crew.job.rendezvous.keys().map(|at| crew.job.met(at, &crew.graphs, step)).collect()
        };
        Meetings { of: common.iter().map(of_step).collect() }
    }

    pub(super) fn at(&self, step: usize, rendezvous: RendezvousId) -> Option<&Met> {
        self.of.get(step)?[rendezvous].as_ref()
    }

    /// One rendezvous over these steps; `None` where it was recorded in none.
    pub(super) fn over(&self, at: RendezvousId, steps: &[usize]) -> Option<CollectiveMet> {
        let all: Vec<&Met> = steps.iter().filter_map(|&step| self.at(step, at)).collect();
        let members = all.first()?.arrivals.len();
        let waited =
            |place: usize| all.iter().map(|met| met.arrivals[place].waited).sum::<Nanos>() / count(&all);
        let last = |place: usize| all.iter().filter(|met| met.last() == place).count();
        Some(CollectiveMet {
            at,
            moving: median(&mut all.iter().map(|met| met.moving).collect::<Vec<Nanos>>())?,
            waited: (0..members).map(waited).collect(),
            last: (0..members).map(last).collect(),
        })
    }
}

/// How many there are, to divide by.
pub(super) fn count<T>(all: &[T]) -> i64 {
    i64::try_from(all.len()).unwrap_or(i64::MAX).max(1)
}
