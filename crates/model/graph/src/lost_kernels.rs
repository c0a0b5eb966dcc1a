//! Launches whose kernels the profiler lost, and steps that lost many of them.

use std::cmp::Reverse;

use steptime_trace::{Nanos, Trace};

use crate::ids::TraceCall;
use crate::marks::{RawMark, Source};
use crate::names::ApiKind;

/// Maximum share of lost launches above that of the best step; a step with more is excluded.
const LOST: f64 = 0.05;

/// Call that launches kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    /// Its kernel was recorded, or it was captured into a graph.
    Recorded,
    /// Its kernel was not recorded.
    Lost,
}

/// Returns for each call whether it launches kernels and whether they were recorded; `None` for other calls, and for a call inside
/// another that launches. `launched_by` is [`launching_calls`](crate::launching_calls) of the trace.
///
/// If at least as many activities have no call as launches have no activity, the links are missing and not the kernels: no launch counts as lost.
#[must_use]
pub fn kernel_launches(trace: &Trace, launched_by: &[Option<TraceCall>]) -> Vec<Option<Launch>> {
    let calls = &trace.calls;
    let mut linked = vec![false; calls.len()];
    for call in launched_by.iter().flatten() {
        linked[call.index()] = true;
    }
    let names: Vec<(bool, bool, bool)> = (trace.names.iter())
        .map(|(_, name)| {
            let launches = matches!(ApiKind::from_name(name), ApiKind::Launch | ApiKind::GraphLaunch);
            (launches, name.contains("BeginCapture"), name.contains("EndCapture"))
        })
        .collect();
    let end = |call: usize| calls.start[call] + calls.dur[call];
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|&call| (calls.thread[call], calls.start[call], Reverse(end(call))));
    let mut found = vec![None; calls.len()];
    let mut lost = 0;
    for of_thread in order.chunk_by(|&one, &other| calls.thread[one] == calls.thread[other]) {
        let (mut captures, mut outer): (bool, Option<(usize, Nanos)>) = (false, None);
        for &call in of_thread {
            let (launches, begins, ends) = names[calls.name[call].index()];
            captures = (captures || begins) && !ends;
            match outer.filter(|&(_, until)| calls.start[call] < until) {
                // The activities of a call inside the outer call count as launched by the outer call.
                Some((outer, _)) if linked[call] && found[outer] == Some(Launch::Lost) => {
                    found[outer] = Some(Launch::Recorded);
                    lost -= 1;
                }
                None if launches => {
                    let is_lost = !linked[call] && !captures;
                    lost += usize::from(is_lost);
                    found[call] = Some(if is_lost { Launch::Lost } else { Launch::Recorded });
                    outer = Some((call, end(call)));
                }
                _ => {}
            }
        }
    }
    if launched_by.iter().filter(|call| call.is_none()).count() >= lost {
        found.iter_mut().flatten().for_each(|launch| *launch = Launch::Recorded);
    }
    found
}

/// Counts of kernel launches of one or several steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Launches {
    pub all: usize,
    /// Launches without a kernel in the recording.
    pub lost: usize,
}

impl Launches {
    /// Counts the launches among marks.
    pub(crate) fn count<'m>(
        launches: &[Option<Launch>],
        marks: impl Iterator<Item = &'m RawMark>,
    ) -> Launches {
        let mut count = Launches::default();
        for mark in marks.filter(|mark| mark.begins) {
            if let Source::Call(call) = mark.source
                && let Some(launch) = launches[call.index()]
            {
                count.all += 1;
                count.lost += usize::from(launch == Launch::Lost);
            }
        }
        count
    }

    fn share(self) -> f64 {
        self.lost as f64 / self.all.max(1) as f64
    }
}

/// Returns for each step whether its share of lost kernels is close to that of the best step.
pub(crate) fn complete_steps(steps: &[Launches]) -> Vec<bool> {
    let least = steps.iter().filter(|step| step.all > 0).map(|step| step.share()).fold(1.0, f64::min);
    steps.iter().map(|step| step.all == 0 || step.share() <= least + LOST).collect()
}
