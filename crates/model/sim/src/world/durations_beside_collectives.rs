//! Kernels next to collectives: a collective takes room on the GPU from the arrival of its rank until all leave.
//!
//! That duration depends on other ranks, so a rank takes it from the step before: in the steady state both are equal.

use steptime_cost::{Demand, PricedGraph};
use steptime_graph::{ActivityId, RendezvousId, StreamId, TiSlice, TiVec};
use steptime_trace::Nanos;

use crate::engine::Engine;
use crate::sharing::{beside, is_one_wave};
use crate::stream::{NEVER, UNKNOWN};

/// Durations of a rank's kernels, as learnt from the steps so far.
pub(super) struct LearntDurations<'g> {
    alone: &'g TiSlice<ActivityId, Nanos>,
    durations: TiVec<ActivityId, Nanos>,
    multiprocessors: u32,
    collectives: Vec<(ActivityId, StreamId, Demand)>,
    kernels: Vec<(ActivityId, StreamId, Demand)>,
    /// Beginning of the step before.
    began: Option<Nanos>,
}

/// A collective on the GPU.
#[derive(Clone, Copy)]
struct CollectiveSpan {
    stream: StreamId,
    demand: Demand,
    from: Nanos,
    to: Nanos,
}

impl<'g> LearntDurations<'g> {
    /// Creates it for a rank; `None` if its kernels' demands are unknown, or nothing runs next to its collectives.
    pub fn build(
        priced: &'g PricedGraph<'_>,
        meets: &TiSlice<ActivityId, Option<RendezvousId>>,
    ) -> Option<LearntDurations<'g>> {
        let demands = priced.demands.as_ref()?;
        let asking = priced.graph.activities.iter_enumerated();
        let asking = asking.filter_map(|(at, row)| Some((at, row.stream, demands.of[at]?)));
        let (collectives, kernels): (Vec<_>, Vec<_>) = asking.partition(|&(at, ..)| meets[at].is_some());
        let apart = |one: StreamId| kernels.iter().any(|&(_, other, _)| other != one);
        collectives.iter().any(|&(_, stream, _)| apart(stream)).then(|| LearntDurations {
            alone: &priced.durations,
            durations: priced.durations.clone(),
            multiprocessors: demands.multiprocessors,
            collectives,
            kernels,
            began: None,
        })
    }

    /// Returns the duration of each activity.
    pub fn durations(&self) -> &TiSlice<ActivityId, Nanos> {
        &self.durations
    }

    /// Updates durations from the overlaps of a simulated step.
    pub fn learn(&mut self, engine: &Engine<'_>) {
        let stay = |&(at, stream, demand): &(ActivityId, StreamId, Demand)| {
            let (from, to) = (engine.starts[at], engine.ends[at]);
            (from != NEVER && to != UNKNOWN && to > from).then_some(CollectiveSpan {
                stream,
                demand,
                from,
                to,
            })
        };
        let now: Vec<CollectiveSpan> = self.collectives.iter().filter_map(stay).collect();
        // Collectives of the steps before and after may run next to this one's kernels.
        let began = self.began.replace(engine.begin());
        let period = began.map(|began| engine.begin() - began);
        let near = period.map_or(vec![Nanos::ZERO], |period| vec![Nanos::ZERO - period, Nanos::ZERO, period]);
        let moved = |by: Nanos| {
            now.iter().map(move |stay| CollectiveSpan { from: stay.from + by, to: stay.to + by, ..*stay })
        };
        let mut all: Vec<CollectiveSpan> = near.into_iter().flat_map(moved).collect();
        all.sort_by_key(|stay| (stay.from, stay.to, stay.stream));
        for &(at, stream, demand) in &self.kernels {
            let start = engine.starts[at];
            let others = all.iter().filter(|stay| stay.stream != stream).copied();
            self.durations[at] = lasts(self.alone[at], start, &demand, others, self.multiprocessors);
        }
    }
}

/// Returns the duration of a kernel that begins at `start`, next to the collectives `stays`.
fn lasts(
    alone: Nanos,
    start: Nanos,
    demand: &Demand,
    stays: impl Iterator<Item = CollectiveSpan>,
    multiprocessors: u32,
) -> Nanos {
    // Placed blocks stay: a kernel that has placed them all loses nothing to later ones.
    let placed = is_one_wave(demand, multiprocessors);
    let there = |stay: &CollectiveSpan| stay.to > start && !(placed && stay.from > start);
    let mut stays: Vec<CollectiveSpan> = stays.filter(there).collect();
    let (mut now, mut left) = (start, alone.0 as f64);
    loop {
        stays.retain(|stay| stay.to > now);
        let (running, later): (Vec<&CollectiveSpan>, Vec<&CollectiveSpan>) =
            stays.iter().partition(|stay| stay.from <= now);
        let times = match running[..] {
            [] => 1.0,
            _ => beside(demand, running.iter().map(|stay| &stay.demand), multiprocessors),
        };
        let change = running.iter().map(|stay| stay.to).chain(later.iter().map(|stay| stay.from)).min();
        let end = now + Nanos((left * times).min(i64::MAX as f64 / 8.0).round() as i64);
        match change.filter(|&change| change < end) {
            None => return end - start,
            Some(change) => {
                left -= (change - now).0 as f64 / times;
                now = change;
            }
        }
    }
}
