//! Which rank the others wait for, and what it does longer than they do.

use steptime_graph::{StepGraph, StepId};
use steptime_trace::Nanos;

use super::Crew;
use super::meetings::Meetings;
use super::work::{LateCause, Work, work};

/// An activity that began so long after its launch was queued behind others: the device was late, not the host.
const QUEUED: Nanos = Nanos(50_000);
/// Less than this share of a step is not worth a name.
pub(super) const WORTH: i64 = 200;

/// A rank that others wait for.
#[derive(Debug, Clone, PartialEq)]
pub struct Straggler {
    /// Its number.
    pub rank: u32,
    /// How long the others wait for it in a step: the mean over them, all collectives together.
    pub keeps_waiting: Nanos,
    /// At which share of all collectives it came last.
    pub last: f64,
    /// In which share of these its host launched late; in the others its device was busy.
    pub by_host: f64,
    /// What it is that takes it longer than the others.
    pub cause: LateCause,
    /// How long that takes in a typical step; where nothing takes it longer, all of its host's or of its device's own work.
    pub busy: Nanos,
    /// The same of the middle one of the others.
    pub others_busy: Nanos,
    /// What takes it longer than the others, the most first.
    pub reasons: Vec<Reason>,
}

/// What a rank spends more time on than the others do.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// Whether it is its host's time; else its device's.
    pub on_host: bool,
    /// The op, the kernel, or what comes after time outside of ops.
    pub what: String,
    /// How much longer a step it takes than on the middle one of the others.
    pub longer: Nanos,
}

/// What is known of a rank as the last one.
#[derive(Debug, Clone, Copy, Default)]
struct Late {
    waits: Nanos,
    times: usize,
    by_host: usize,
}

/// The ranks that others waited for in these of the common steps, the worst first.
pub(super) fn stragglers(
    crew: &Crew<'_>,
    met: &Meetings,
    steps: &[usize],
    common: &[Vec<StepId>],
) -> Vec<Straggler> {
    let graphs = &crew.graphs;
    let mut late = vec![Late::default(); graphs.len()];
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
    times.is_none_or(|(start, launched)| start - launched < QUEUED)
}
