//! Which rank the others wait for, and what it does longer than they do.

use std::collections::BTreeMap;

use steptime_cost::{HostCosts, Process};
use steptime_graph::{StepGraph, StepId, median};
use steptime_sim::critical::{Place, op_of};
use steptime_trace::Nanos;

use super::Crew;
use super::meetings::Meetings;
use crate::shipped_host::own_constants;

/// An activity that began so long after its launch was queued behind others: the device was late, not the host.
const QUEUED: Nanos = Nanos(50_000);
/// Reasons to name.
const REASONS: usize = 3;
/// Less than this share of a step is not worth a name.
const WORTH: i64 = 200;

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
    /// How long its own work takes in a typical step on the side that was late: of its host, or of its device.
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
            let Work { busy, others_busy, reasons } =
                work(graphs, rank, late.by_host * 2 >= late.times, period);
            Straggler {
                rank: crew.numbers[rank],
                keeps_waiting: late.waits / count,
                last: late.times as f64 / meetings.max(1) as f64,
                by_host: late.by_host as f64 / late.times.max(1) as f64,
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

/// A rank's work beside that of the others.
struct Work {
    busy: Nanos,
    others_busy: Nanos,
    reasons: Vec<Reason>,
}

/// What takes a rank longer than the middle one of the others, on the side that was late.
fn work(graphs: &[&StepGraph], rank: usize, on_host: bool, period: Nanos) -> Work {
    let side = if on_host { host_times } else { device_times };
    let all: Vec<BTreeMap<String, Nanos>> = graphs.iter().map(|graph| side(graph)).collect();
    let of_others = |time: &dyn Fn(&BTreeMap<String, Nanos>) -> Nanos| {
        let others = all.iter().enumerate().filter(|(at, _)| *at != rank);
        median(&mut others.map(|(_, times)| time(times)).collect::<Vec<Nanos>>()).unwrap_or_default()
    };
    let mut reasons: Vec<Reason> = all[rank]
        .iter()
        .map(|(what, &time)| {
            let others = of_others(&|times| times.get(what).copied().unwrap_or_default());
            Reason { on_host, what: what.clone(), longer: time - others }
        })
        .filter(|reason| reason.longer > period / WORTH)
        .collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.longer));
    reasons.truncate(REASONS);
    Work {
        busy: all[rank].values().copied().sum(),
        others_busy: of_others(&|times| times.values().copied().sum()),
        reasons,
    }
}

/// The host's own time of a typical profiled step by outermost op; what waits for the device is left out.
fn host_times(graph: &StepGraph) -> BTreeMap<String, Nanos> {
    let (_, coupling) = own_constants(Process::Profiled);
    let mut times: BTreeMap<String, Nanos> = BTreeMap::new();
    for (mark, gap) in HostCosts::profiled(graph, &coupling).gaps.into_iter_enumerated() {
        let what = match op_of(graph, Place::Host(mark)).map(|op| graph.top_level(op)) {
            Some(op) if !graph.ops[op].annotation => graph.op_name(op).to_owned(),
            _ => format!("outside of ops, before {}", graph.names.get(graph.mark_name(mark))),
        };
        *times.entry(what).or_default() += gap;
    }
    times
}

/// The device's time of a typical step by kernel; collectives are left out.
fn device_times(graph: &StepGraph) -> BTreeMap<String, Nanos> {
    let mut times: BTreeMap<String, Nanos> = BTreeMap::new();
    for (at, activity) in graph.activities.iter_enumerated().filter(|(_, row)| row.collective.is_none()) {
        let time = graph.samples.median_duration(at).unwrap_or_default();
        *times.entry(graph.names.get(activity.name).to_owned()).or_default() += time;
    }
    times
}
