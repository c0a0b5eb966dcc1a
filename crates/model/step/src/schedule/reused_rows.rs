//! Recorded rows of a scheduled step.

use rustc_hash::FxHashMap;
use steptime_graph::{ActivityId, Blocking, CallId, MarkId, StepGraph, StreamDependency, TiVec};

/// For each row of a scheduled graph, its row in the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReusedRows {
    /// Recorded mark, independent of the mark before it.
    pub marks: TiVec<MarkId, Option<MarkId>>,
    /// Whether the host time before a mark is the recorded one: the mark before it is the recorded one, too.
    pub gaps: TiVec<MarkId, bool>,
    /// Recorded mark with the same host time before it, where an op is repeated.
    pub like: TiVec<MarkId, Option<MarkId>>,
    /// Recorded call.
    pub calls: TiVec<CallId, Option<CallId>>,
    /// Recorded activity.
    pub activities: TiVec<ActivityId, Option<ActivityId>>,
}

impl ReusedRows {
    /// Composition with the mapping `beneath`, where `self` is carried over from a step that was itself scheduled.
    #[must_use]
    pub fn over(&self, beneath: &ReusedRows) -> ReusedRows {
        let mark = |at: &Option<MarkId>| at.and_then(|at| beneath.marks[at]);
        let gap = |(&here, at): (&bool, &Option<MarkId>)| here && at.is_some_and(|at| beneath.gaps[at]);
        let like =
            |(&here, at): (&bool, &Option<MarkId>)| at.filter(|_| here).and_then(|at| beneath.like[at]);
        ReusedRows {
            like: self.gaps.iter().zip(&self.marks).map(like).collect(),
            marks: self.marks.iter().map(mark).collect(),
            gaps: self.gaps.iter().zip(&self.marks).map(gap).collect(),
            calls: self.calls.iter().map(|at| at.and_then(|at| beneath.calls[at])).collect(),
            activities: self.activities.iter().map(|at| at.and_then(|at| beneath.activities[at])).collect(),
        }
    }

    /// Copies waits between activities, where both still run.
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
