//! Gaps between activities in which a kernel ran that the profiler lost.

use steptime_graph::{ActivityId, ApiKind, StepGraph};
use steptime_trace::Nanos;

use crate::timeline::Timeline;

/// Times of launches without a kernel, in order; empty if the recording lost none.
#[derive(Debug)]
pub(super) struct LostWork {
    launches: Vec<Nanos>,
}

impl LostWork {
    pub(super) fn find(graph: &StepGraph, timeline: &Timeline) -> LostWork {
        let mut launches = Vec::new();
        if graph.coverage.launches_lost > 0 {
            let lost =
                graph.calls.iter().filter(|call| call.kind == ApiKind::Launch && !call.has_activities());
            launches.extend(lost.map(|call| timeline.marks[call.end]));
            launches.sort_unstable();
        }
        LostWork { launches }
    }

    /// Whether a launch was lost between those of two activities, the first of which may be of the step before.
    pub(super) fn between(
        &self,
        graph: &StepGraph,
        timeline: &Timeline,
        from: Option<ActivityId>,
        to: ActivityId,
    ) -> bool {
        let launched =
            |activity: ActivityId| timeline.marks[graph.calls[graph.activities[activity].call].end];
        let (to, from) = (launched(to), from.map(launched));
        let within = |from: Nanos, to: Nanos| {
            let at = self.launches.partition_point(|&time| time <= from);
            self.launches.get(at).is_some_and(|&time| time < to)
        };
        match from {
            Some(from) if from <= to => within(from, to),
            Some(from) => within(from, Nanos::MAX) || within(Nanos(i64::MIN), to),
            None => within(Nanos(i64::MIN), to),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }
}
