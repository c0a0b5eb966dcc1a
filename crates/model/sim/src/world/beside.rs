//! Kernels beside collectives: those take room on the GPU from when their rank comes until all leave.
//!
//! How long that is depends on other ranks, so a rank learns it from the step before: in the steady state that is what it is.

use steptime_cost::{Demand, PricedGraph};
use steptime_graph::{ActivityId, RendezvousId, StreamId, TiSlice, TiVec};
use steptime_trace::Nanos;

use crate::engine::Engine;
use crate::sharing::{beside, is_one_wave};
use crate::stream::{NEVER, UNKNOWN};

/// What the kernels of a rank take, as far as is known from the steps so far.
pub(super) struct Beside<'g> {
    alone: &'g TiSlice<ActivityId, Nanos>,
    durations: TiVec<ActivityId, Nanos>,
    multiprocessors: u32,
    collectives: Vec<(ActivityId, StreamId, Demand)>,
    kernels: Vec<(ActivityId, StreamId, Demand)>,
    /// When the step before began.
    began: Option<Nanos>,
}

/// A collective on the GPU.
#[derive(Clone, Copy)]
struct Stay {
    stream: StreamId,
    demand: Demand,
    from: Nanos,
    to: Nanos,
}

impl<'g> Beside<'g> {
    /// Of a rank; `None` where it is not known what its kernels ask for, or nothing runs beside its collectives.
    pub fn of(
        priced: &'g PricedGraph<'_>,
        meets: &TiSlice<ActivityId, Option<RendezvousId>>,
    ) -> Option<Beside<'g>> {
        let demands = priced.demands.as_ref()?;
        let asking = priced.graph.activities.iter_enumerated();
        let asking = asking.filter_map(|(at, row)| Some((at, row.stream, demands.of[at]?)));
        let (collectives, kernels): (Vec<_>, Vec<_>) = asking.partition(|&(at, ..)| meets[at].is_some());
        let apart = |one: StreamId| kernels.iter().any(|&(_, other, _)| other != one);
        collectives.iter().any(|&(_, stream, _)| apart(stream)).then(|| Beside {
            alone: &priced.durations,
            durations: priced.durations.clone(),
            multiprocessors: demands.multiprocessors,
            collectives,
            kernels,
            began: None,
        })
    }

    /// What each activity takes.
    pub fn durations(&self) -> &TiSlice<ActivityId, Nanos> {
        &self.durations
    }

    /// Learns from a step that was simulated what ran beside what.
    pub fn learn(&mut self, engine: &Engine<'_>) {
        let stay = |&(at, stream, demand): &(ActivityId, StreamId, Demand)| {
            let (from, to) = (engine.starts[at], engine.ends[at]);
            (from != NEVER && to != UNKNOWN && to > from).then_some(Stay { stream, demand, from, to })
        };
        let now: Vec<Stay> = self.collectives.iter().filter_map(stay).collect();
        // Those of the steps before and after may run beside this one's kernels.
        let began = self.began.replace(engine.begin());
        let period = began.map(|began| engine.begin() - began);
        let near = period.map_or(vec![Nanos::ZERO], |period| vec![Nanos::ZERO - period, Nanos::ZERO, period]);
        let moved =
            |by: Nanos| now.iter().map(move |stay| Stay { from: stay.from + by, to: stay.to + by, ..*stay });
        let mut all: Vec<Stay> = near.into_iter().flat_map(moved).collect();
        all.sort_by_key(|stay| (stay.from, stay.to, stay.stream));
        for &(at, stream, demand) in &self.kernels {
            let start = engine.starts[at];
            let others = all.iter().filter(|stay| stay.stream != stream).copied();
            self.durations[at] = lasts(self.alone[at], start, &demand, others, self.multiprocessors);
        }
    }
}

/// How long a kernel takes that begins at a time, beside what stays.
fn lasts(
    alone: Nanos,
    start: Nanos,
    demand: &Demand,
    stays: impl Iterator<Item = Stay>,
    multiprocessors: u32,
) -> Nanos {
    // Blocks that are placed stay: a kernel that has placed them all loses nothing to what comes later.
    let placed = is_one_wave(demand, multiprocessors);
    let there = |stay: &Stay| stay.to > start && !(placed && stay.from > start);
    let mut stays: Vec<Stay> = stays.filter(there).collect();
    let (mut now, mut left) = (start, alone.0 as f64);
    loop {
        stays.retain(|stay| stay.to > now);
        let (running, later): (Vec<&Stay>, Vec<&Stay>) = stays.iter().partition(|stay| stay.from <= now);
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
