//! Which rows of a scheduled step were recorded.

use rustc_hash::FxHashMap;
use steptime_graph::{ActivityId, Blocking, CallId, MarkId, StepGraph, StreamDependency, TiVec};

/// For each row of a scheduled graph, the row of the recording that it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// The mark, whether or not what came before it then comes before it now.
    pub marks: TiVec<MarkId, Option<MarkId>>,
    /// Whether the host time before a mark is the one recorded before it: the same mark comes before both.
    pub gaps: TiVec<MarkId, bool>,
    /// The mark of the recording before which there is as much host time, where an op runs once more.
    pub like: TiVec<MarkId, Option<MarkId>>,
    /// The call.
    pub calls: TiVec<CallId, Option<CallId>>,
    /// The activity.
    pub activities: TiVec<ActivityId, Option<ActivityId>>,
}

impl Carried {
    /// What is carried from the step beneath, where `self` is carried from a step that was itself scheduled.
    #[must_use]
    pub fn over(&self, beneath: &Carried) -> Carried {
        let mark = |at: &Option<MarkId>| at.and_then(|at| beneath.marks[at]);
        let gap = |(&here, at): (&bool, &Option<MarkId>)| here && at.is_some_and(|at| beneath.gaps[at]);
        let like =
            |(&here, at): (&bool, &Option<MarkId>)| at.filter(|_| here).and_then(|at| beneath.like[at]);
        Carried {
            like: self.gaps.iter().zip(&self.marks).map(like).collect(),
            marks: self.marks.iter().map(mark).collect(),
            gaps: self.gaps.iter().zip(&self.marks).map(gap).collect(),
            calls: self.calls.iter().map(|at| at.and_then(|at| beneath.calls[at])).collect(),
            activities: self.activities.iter().map(|at| at.and_then(|at| beneath.activities[at])).collect(),
        }
    }

    /// Waits between activities, where both still run.
    pub(crate) fn waits(&self, graph: &mut StepGraph, base: &StepGraph) {
        let now: FxHashMap<ActivityId, ActivityId> =
            self.activities.iter_enumerated().filter_map(|(now, was)| Some(((*was)?, now))).collect();
        let both = |wait: &StreamDependency| {
            Some(StreamDependency { from: *now.get(&wait.from)?, to: *now.get(&wait.to)?, ..*wait })
        };
        graph.waits = base.waits.iter().filter_map(both).collect();
        graph.waits.sort_by_key(|wait| wait.to);
        for (at, call) in graph.calls.iter_mut_enumerated() {
            if let (Blocking::Activity(was), Some(_)) = (call.blocking, self.calls[at]) {
                call.blocking = now.get(&was).map_or(Blocking::Never, |&now| Blocking::Activity(now));
            }
        }
    }
}
