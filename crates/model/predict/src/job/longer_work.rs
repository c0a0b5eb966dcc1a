//! Work that takes longer on one rank than on the others.

use std::collections::BTreeMap;

use steptime_cost::{HostCosts, Process};
use steptime_graph::{Blocking, MarkKind, Phase, StepGraph, median};
use steptime_sim::critical::{Place, op_of};
use steptime_trace::{ActivityKind, Nanos};

use crate::shipped_host::own_constants;

/// Divisor of the period that gives the smallest reported difference.
pub(super) const WORTH: i64 = 200;
/// Maximum number of reasons.
const REASONS: usize = 3;

/// Work on which a rank spends more time than the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// Whether it is its host's time; else its device's.
    pub on_host: bool,
    /// The op, the kernel, or the event after time outside of ops.
    pub what: String,
    /// Its extra time per step over the median of the other ranks.
    pub longer: Nanos,
}

/// Cause of a rank's lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LateCause {
    /// Its host gets the batch: loads it, and copies it to the device.
    Input,
    /// Its host does other work.
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

/// A rank's work compared with that of the others.
pub(super) struct Work {
    pub cause: LateCause,
    pub busy: Nanos,
    pub others_busy: Nanos,
    pub reasons: Vec<Reason>,
}

/// A rank's own times in a typical step, by cause and name.
type Times = BTreeMap<(LateCause, String), Nanos>;

/// Finds the work that takes longer on a rank than on the median of the others. A busy device delays a host that waits for it; a host
/// does not delay a device that was busy.
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
    // Names all work of that side, where no single part of it takes longer.
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

/// The host's own time of a typical profiled step by outermost op, without waits for the device, and the device's time by kernel and
/// copy, without collectives.
fn times(graph: &StepGraph) -> Times {
    let (_, coupling) = own_constants(Process::Profiled);
    let mut times = Times::new();
    for (mark, gap) in HostCosts::profiled(graph, &coupling).gaps.into_iter_enumerated() {
        let op = op_of(graph, Place::Host(mark)).map(|op| graph.top_level(op));
        // Time outside of ops belongs to the next event.
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
