//! Launches whose kernels the profiler lost, and steps that lost most of theirs.

use steptime_trace::Trace;

use crate::links::Links;
use crate::marks::{RawMark, Source};
use crate::names::ApiKind;

/// A step that lost this share of its launches more than the best step is left out.
const LOST: f64 = 0.05;

/// Kernel launches of a step, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Launches {
    /// Calls that launch kernels; one inside another counts once.
    pub all: usize,
    /// Of these, without a device activity, although nothing was captured.
    pub lost: usize,
}

impl Launches {
    /// Counts the launches among the marks of one thread.
    pub(crate) fn of(trace: &Trace, links: &Links, marks: &[RawMark]) -> Launches {
        let mut launches = Launches::default();
        // The launches that are open: whether an activity was found for them.
        let mut open: Vec<(Source, bool)> = Vec::new();
        let mut captures = false;
        for mark in marks {
            let Source::Call(call) = mark.source else { continue };
            let name = trace.names.get(mark.name);
            captures = (captures || name.contains("BeginCapture")) && !name.contains("EndCapture");
            if mark.begins {
                let found = !links.of_call(trace, call).is_empty();
                if let Some(outer) = open.last_mut() {
                    outer.1 |= found;
                }
                if matches!(ApiKind::of(name), ApiKind::Launch | ApiKind::GraphLaunch) {
                    open.push((mark.source, found));
                }
            } else if open.last().is_some_and(|outer| outer.0 == mark.source)
                && let Some((_, found)) = open.pop()
            {
                match open.last_mut() {
                    Some(outer) => outer.1 |= found,
                    None => {
                        launches.all += 1;
                        launches.lost += usize::from(!found && !captures);
                    }
                }
            }
        }
        launches
    }

    /// The launches of both.
    pub(crate) fn and(self, other: Launches) -> Launches {
        Launches { all: self.all + other.all, lost: self.lost + other.lost }
    }

    fn share(self) -> f64 {
        self.lost as f64 / self.all.max(1) as f64
    }
}

/// For each step, whether it lost hardly more of its kernels than the best one did.
pub(crate) fn whole(steps: &[Launches]) -> Vec<bool> {
    let least = steps.iter().filter(|step| step.all > 0).map(|step| step.share()).fold(1.0, f64::min);
    steps.iter().map(|step| step.all == 0 || step.share() <= least + LOST).collect()
}
