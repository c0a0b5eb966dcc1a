//! The collectives of a job's steps as recorded.

use steptime_graph::{RendezvousId, RendezvousTimes, StepId, TiVec, median};
use steptime_trace::Nanos;

use super::JobGraphs;

/// A recorded collective of the step.
#[derive(Debug, Clone)]
pub struct CollectiveMeeting {
    /// Its id.
    pub at: RendezvousId,
    /// Median time once all ranks had arrived.
    pub moving: Nanos,
    /// Mean waiting time of each member.
    pub waited: Vec<Nanos>,
    /// Number of steps in which each member arrived last.
    pub last: Vec<usize>,
}

/// Every rendezvous of every common step; `None` where a rank's part was not recorded.
pub(super) struct Meetings {
    of: Vec<TiVec<RendezvousId, Option<RendezvousTimes>>>,
}

impl Meetings {
    pub(super) fn find(crew: &JobGraphs<'_>, common: &[Vec<StepId>]) -> Meetings {
        let of_step = |step: &Vec<StepId>| {
            crew.job.rendezvous.keys().map(|at| crew.job.rendezvous_times(at, &crew.graphs, step)).collect()
        };
        Meetings { of: common.iter().map(of_step).collect() }
    }

    pub(super) fn at(&self, step: usize, rendezvous: RendezvousId) -> Option<&RendezvousTimes> {
        self.of.get(step)?[rendezvous].as_ref()
    }

    /// Summarises one rendezvous over these steps; `None` where it was recorded in none.
    pub(super) fn over(&self, at: RendezvousId, steps: &[usize]) -> Option<CollectiveMeeting> {
        let all: Vec<&RendezvousTimes> = steps.iter().filter_map(|&step| self.at(step, at)).collect();
        let members = all.first()?.arrivals.len();
        let waited =
            |place: usize| all.iter().map(|met| met.arrivals[place].waited).sum::<Nanos>() / count(&all);
        let last = |place: usize| all.iter().filter(|met| met.last() == place).count();
        Some(CollectiveMeeting {
            at,
            moving: median(&mut all.iter().map(|met| met.moving).collect::<Vec<Nanos>>())?,
            waited: (0..members).map(waited).collect(),
            last: (0..members).map(last).collect(),
        })
    }
}

/// Length of a slice as a divisor, at least 1.
pub(super) fn count<T>(all: &[T]) -> i64 {
    i64::try_from(all.len()).unwrap_or(i64::MAX).max(1)
}
