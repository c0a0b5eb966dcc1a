//! What a rank works longer at than the others.

use std::collections::BTreeMap;

use steptime_cost::{HostCosts, Process};
use steptime_graph::{Blocking, MarkKind, Phase, StepGraph, median};
use steptime_sim::critical::{Place, op_of};
use steptime_trace::{ActivityKind, Nanos};

use super::stragglers::{Reason, WORTH};
use crate::shipped_host::own_constants;

/// Reasons to name.
const REASONS: usize = 3;

/// What makes a rank late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LateCause {
    /// Its host gets the batch: loads it, and hands it to the device.
    Input,
    /// Its host does anything else.
    Host,
    /// Its device copies.
    Copies,
    /// Its device computes.
    Kernels,
}

impl LateCause {
    const ALL: [LateCause; 4] = [LateCause::Input, LateCause::Host, LateCause::Copies, LateCause::Kernels];

    /// Its name in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LateCause::Input => "input",
            LateCause::Host => "host",
            LateCause::Copies => "copies",
            LateCause::Kernels => "kernels",
        }
    }

    /// Whether it is the host's time; else it is the device's.
    #[must_use]
    pub fn is_on_host(self) -> bool {
        matches!(self, LateCause::Input | LateCause::Host)
    }
}

/// A rank's work beside that of the others.
pub(super) struct Work {
    pub cause: LateCause,
    pub busy: Nanos,
    pub others_busy: Nanos,
    pub reasons: Vec<Reason>,
}

/// A rank's own times in a typical step, by what they are.
type Times = BTreeMap<(LateCause, String), Nanos>;

/// What takes a rank longer than the middle one of the others. A device that is busy makes a host late that waits for it; a host
/// does not make a device late that was busy.
pub(super) fn work(graphs: &[&StepGraph], rank: usize, host_was_late: bool, period: Nanos) -> Work {
    let all: Vec<Times> = graphs.iter().map(|graph| times(graph)).collect();
    let of_others = |time: &dyn Fn(&Times) -> Nanos| {
        let others = all.iter().enumerate().filter(|(at, _)| *at != rank);
        median(&mut others.map(|(_, times)| time(times)).collect::<Vec<Nanos>>()).unwrap_or_default()
    };
    let sum = |times: &Times, of: &dyn Fn(LateCause) -> bool| -> Nanos {
        times.iter().filter(|((cause, _), _)| of(*cause)).map(|(_, time)| *time).sum()
    };
    let waits = graphs[rank].calls.iter().any(|call| call.blocking != Blocking::Never);
    let may =
        |cause: LateCause| if host_was_late { cause.is_on_host() || waits } else { !cause.is_on_host() };
    let longer = |of: &dyn Fn(LateCause) -> bool| sum(&all[rank], of) - of_others(&|times| sum(times, of));
    let usual = if host_was_late { LateCause::Host } else { LateCause::Kernels };
    let most =
        LateCause::ALL.into_iter().filter(|&cause| may(cause)).max_by_key(|&own| longer(&|of| of == own));
    let found = most.filter(|&most| longer(&|of| of == most) > period / WORTH);
    let cause = found.unwrap_or(usual);
    // What is named is all of that side, where it was found to be none of its parts.
    let of = |other: LateCause| {
        if found.is_some() { other == cause } else { other.is_on_host() == cause.is_on_host() }
    };
    let mut reasons: Vec<Reason> = all[rank]
        .iter()
        .filter(|((other, _), _)| of(*other))
        .map(|(key, &time)| {
            let others = of_others(&|times| times.get(key).copied().unwrap_or_default());
            Reason { on_host: key.0.is_on_host(), what: key.1.clone(), longer: time - others }
        })
        .filter(|reason| reason.longer > period / WORTH)
        .collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.longer));
    reasons.truncate(REASONS);
    let (busy, others_busy) = (sum(&all[rank], &of), of_others(&|times| sum(times, &of)));
    Work { cause, busy, others_busy, reasons }
}

/// The host's own time of a typical profiled step by outermost op, without what waits for the device; the device's by kernel and
/// copy, without collectives.
fn times(graph: &StepGraph) -> Times {
    let (_, coupling) = own_constants(Process::Profiled);
    let mut times = Times::new();
    for (mark, gap) in HostCosts::profiled(graph, &coupling).gaps.into_iter_enumerated() {
        let op = op_of(graph, Place::Host(mark)).map(|op| graph.top_level(op));
        // Time outside of ops is of what comes after it.
        let next = match graph.marks[mark].kind {
            MarkKind::OpBegin(op) => Some(op),
            _ => op,
        };
        let of_input = next.is_some_and(|op| graph.ops[op].phase == Phase::Input);
        let what = match op {
            Some(op) if !graph.ops[op].annotation => graph.op_name(op).to_owned(),
            _ => format!("outside of ops, before {}", graph.names.get(graph.mark_name(mark))),
        };
        let cause = if of_input { LateCause::Input } else { LateCause::Host };
        *times.entry((cause, what)).or_default() += gap;
    }
    for (at, activity) in graph.activities.iter_enumerated().filter(|(_, row)| row.collective.is_none()) {
        let time = graph.samples.median_duration(at).unwrap_or_default();
        let cause =
            if activity.kind == ActivityKind::Memcpy { LateCause::Copies } else { LateCause::Kernels };
        *times.entry((cause, graph.names.get(activity.name).to_owned())).or_default() += time;
    }
    times
}
