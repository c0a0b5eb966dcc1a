//! Stragglers: ranks that others wait for, and the work that takes longer on them.

use steptime_graph::{StepGraph, StepId};
use steptime_trace::Nanos;

use super::JobGraphs;
use super::longer_work::{LateCause, Reason, WORTH, Work, work};
use super::rendezvous::Meetings;
use crate::uncertainty::uncertainty;

/// A rank that others wait for.
#[derive(Debug, Clone, PartialEq)]
pub struct Straggler {
    /// Its number.
    pub rank: u32,
    /// Waiting time that it causes per step: the mean over the other ranks, all collectives together.
    pub keeps_waiting: Nanos,
    /// Share of all collectives at which it arrived last.
    pub last: f64,
    /// Share of those in which its host launched late; in the rest its device was busy.
    pub by_host: f64,
    /// Cause of its lateness.
    pub cause: LateCause,
    /// Time of that cause in a typical step; where nothing takes longer, all of its host's or of its device's own work.
    pub busy: Nanos,
    /// The same for the median of the other ranks.
    pub others_busy: Nanos,
    /// Ops or kernels that take longer than on the other ranks, largest difference first.
    pub reasons: Vec<Reason>,
}

/// Sums over the collectives at which a rank arrived last.
#[derive(Debug, Clone, Copy, Default)]
struct LateSums {
    waits: Nanos,
    times: usize,
    by_host: usize,
}

/// Ranks that others waited for in these of the common steps, worst first.
pub(super) fn stragglers(
    crew: &JobGraphs<'_>,
    met: &Meetings,
    steps: &[usize],
    common: &[Vec<StepId>],
) -> Vec<Straggler> {
    let graphs = &crew.graphs;
    let mut late = vec![LateSums::default(); graphs.len()];
    let mut meetings = 0usize;
    for &step in steps {
        for (at, rendezvous) in crew.job.rendezvous.iter_enumerated() {
            let Some(met) = met.at(step, at).filter(|met| met.arrivals.len() > 1) else { continue };
            let last = rendezvous.members[met.last()];
            let others = met.arrivals.len() as i64 - 1;
            let row = &mut late[last.rank];
            row.waits += met.arrivals.iter().map(|arrival| arrival.waited).sum::<Nanos>() / others;
            row.times += 1;
            let by_host = launched_late(graphs[last.rank], common[step][last.rank], last.activity);
            row.by_host += usize::from(by_host);
            meetings += 1;
        }
    }
    let count = i64::try_from(steps.len()).unwrap_or(i64::MAX).max(1);
    let period = graphs.first().and_then(|graph| graph.samples.median_period()).unwrap_or_default();
    let mut found: Vec<Straggler> = late
        .iter()
        .enumerate()
        .filter(|(_, late)| late.waits / count > period / WORTH)
        .map(|(rank, late)| {
            let Work { cause, busy, others_busy, reasons } =
                work(graphs, rank, late.by_host * 2 >= late.times, period);
            Straggler {
                rank: crew.numbers[rank],
                keeps_waiting: late.waits / count,
                last: late.times as f64 / meetings.max(1) as f64,
                by_host: late.by_host as f64 / late.times.max(1) as f64,
                cause,
                busy,
                others_busy,
                reasons,
            }
        })
        .collect();
    found.sort_by_key(|straggler| std::cmp::Reverse(straggler.keeps_waiting));
    found
}

/// Whether an activity began as soon as it was launched.
fn launched_late(graph: &StepGraph, step: StepId, activity: steptime_graph::ActivityId) -> bool {
    let call = &graph.calls[graph.activities[activity].call];
    let times = graph.samples.activity_start(step, activity).zip(graph.samples.mark(step, call.end));
    times.is_none_or(|(start, launched)| start - launched < Nanos(uncertainty().ranks.queued_ns))
}
