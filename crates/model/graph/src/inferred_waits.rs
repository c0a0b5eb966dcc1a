//! Dependencies of activities that the trace does not contain: inferred from the device's times.
//!
//! An activity that begins long after its launch, and long after the activity before it on its stream, waited for
//! something else. If in nearly every step it begins right after the same activity of another stream ends, it waits
//! for that one. This orders the streams of captured graphs with the stream they were launched into, and gives waits
//! whose events were not recorded their edges.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use steptime_trace::{Nanos, StreamId};
use typed_index_collections::{TiSlice, TiVec};

use crate::graph::StepGraph;
use crate::ids::{ActivityId, CallId};
use crate::samples::{Samples, median};
use crate::tables::{Activity, Blocking, Call, StreamDependency};

/// Minimum delay after the last known dependency of a late activity.
const LATE: Nanos = Nanos(6_000);
/// Maximum time between the end of one activity and the start of another that begins right after it.
const RIGHT_AFTER: Nanos = Nanos(10_000);
/// Accuracy to which times on different streams are comparable.
const BEFORE: Nanos = Nanos(500);
/// Minimum delay after all known dependencies of a very late activity: its code had to be loaded, or it waited for something
/// that was not recorded.
const VERY_LATE: Nanos = Nanos(500_000);
/// Number of candidates examined for one activity in one step.
const NEAREST: usize = 8;

/// Adds the dependencies that the times show, for activities with a delay that `known` does not explain.
pub(crate) fn infer(
    calls: &TiSlice<CallId, Call>,
    activities: &TiSlice<ActivityId, Activity>,
    samples: &Samples,
    known: &mut Vec<StreamDependency>,
) {
    let mut streams: Vec<StreamId> = activities.iter().map(|a| a.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    if streams.len() < 2 {
        return;
    }
    let sightings = Sightings::count(calls, activities, samples, known);
    known.extend(sightings.dependencies(calls, activities, samples));
}

/// Minimum number of steps with a late start for it to count as one of every step.
const REPEATED: usize = 3;

/// Finds the activities that began very late on an idle stream, in the median of the steps. Those of one or two steps are
/// only counted: the replay starts them at once.
pub(crate) fn hold_back(graph: &mut StepGraph) {
    let mut free: FxHashMap<StreamId, Nanos> = FxHashMap::default();
    let samples = &graph.samples;
    let steps = samples.steps().len();
    // Delay of each activity, per step.
    let mut late: Vec<Option<Nanos>> = vec![None; steps * graph.activities.len()];
    for step in samples.steps() {
        let starts = in_time(&graph.activities, |activity| samples.activity_start(step, activity));
        for (start, activity) in starts {
            let row = &graph.activities[activity];
            let Some(launched) = samples.mark(step, graph.calls[row.call].end) else { continue };
            let awaited = graph.waits_of(activity).filter_map(|wait| {
                let from = if wait.wraps { (step.0 > 0).then(|| step.previous())? } else { step };
                samples.activity_end(from, wait.from)
            });
            let before = free.get(&row.stream).copied();
            let ready = awaited
                .filter(|&end| end <= start)
                .fold(before.unwrap_or(launched).max(launched), Nanos::max);
            let blocks = graph.calls[row.call].blocking != Blocking::Never || row.collective.is_some();
            let known = before.is_some() || step.0 > 0 || samples.steps().len() == 1;
            let delay = if blocks || !known { Nanos::ZERO } else { start - ready };
            late[activity.index() * steps + step.index()] = Some(delay);
            if let Some(end) = samples.activity_end(step, activity) {
                let slot = free.entry(row.stream).or_insert(end);
                *slot = (*slot).max(end);
            }
        }
    }
    graph.held_back = vec![Nanos::ZERO; graph.activities.len()].into();
    let mut delays: Vec<Nanos> = Vec::with_capacity(steps);
    for (activity, seen) in graph.activities.keys().zip(late.chunks_exact(steps.max(1))) {
        delays.clear();
        delays.extend(seen.iter().flatten());
        let Some(delay) = median(&mut delays).filter(|&delay| delay > VERY_LATE) else { continue };
        if delays.len() >= REPEATED {
            graph.held_back[activity] = delay;
        } else {
            graph.coverage.late_starts += 1;
            graph.coverage.late += delay;
        }
    }
}

/// Counts of late activities, and of activities that ended just before they began.
struct Sightings {
    /// Number of steps in which each activity was late.
    late: TiVec<ActivityId, u32>,
    /// For a late activity and an activity of another stream, of this step or of the step before: the number of times the latter
    /// ended right before the former began.
    seen: FxHashMap<(ActivityId, ActivityId, bool), u32>,
}

impl Sightings {
    /// Collects the counts over all steps.
    fn count(
        calls: &TiSlice<CallId, Call>,
        activities: &TiSlice<ActivityId, Activity>,
        samples: &Samples,
        known: &[StreamDependency],
    ) -> Sightings {
        let mut waits: FxHashMap<ActivityId, Vec<ActivityId>> = FxHashMap::default();
        for wait in known.iter().filter(|wait| !wait.wraps) {
            waits.entry(wait.to).or_default().push(wait.from);
        }
        let mut found = Sightings { late: vec![0; activities.len()].into(), seen: FxHashMap::default() };
        let mut before: Vec<(Nanos, ActivityId)> = Vec::new();
        let mut last_end: FxHashMap<StreamId, Nanos> = FxHashMap::default();
        for step in samples.steps() {
            let ends = in_time(activities, |activity| samples.activity_end(step, activity));
            for (start, to) in in_time(activities, |activity| samples.activity_start(step, activity)) {
                let row = &activities[to];
                let free = last_end.get(&row.stream).copied();
                if let Some(end) = samples.activity_end(step, to) {
                    let slot = last_end.entry(row.stream).or_insert(end);
                    *slot = (*slot).max(end);
                }
                let Some(launched) = samples.mark(step, calls[row.call].end) else { continue };
                let awaited =
                    waits.get(&to).into_iter().flatten().filter_map(|&from| samples.activity_end(step, from));
                let ready = awaited
                    .filter(|&end| end <= start)
                    .fold(free.unwrap_or(launched).max(launched), Nanos::max);
                // The first activity of a recording follows unrecorded work.
                if start - ready < LATE || (step.0 == 0 && free.is_none()) {
                    continue;
                }
                found.late[to] += 1;
                found.note(activities, (start, to), &ends, false);
                found.note(activities, (start, to), &before, true);
            }
            before = ends;
        }
        found
    }

    /// Counts the activities of other streams that ended right before a late activity began; `ends` is in time order.
    fn note(
        &mut self,
        activities: &TiSlice<ActivityId, Activity>,
        (start, to): (Nanos, ActivityId),
        ends: &[(Nanos, ActivityId)],
        wraps: bool,
    ) {
        let upto = ends.partition_point(|&(end, _)| end <= start + BEFORE);
        let nearest = ends[..upto].iter().rev().take(NEAREST);
        for &(_, from) in nearest.take_while(|&&(end, _)| end + RIGHT_AFTER >= start) {
            if activities[from].stream != activities[to].stream {
                *self.seen.entry((to, from, wraps)).or_default() += 1;
            }
        }
    }

    /// Returns for each late activity the one that it waits for: the one seen most often, if that is in nearly all steps.
    fn dependencies(
        &self,
        calls: &TiSlice<CallId, Call>,
        activities: &TiSlice<ActivityId, Activity>,
        samples: &Samples,
    ) -> impl Iterator<Item = StreamDependency> + use<> {
        let mut best: FxHashMap<ActivityId, (u32, Reverse<ActivityId>, bool)> = FxHashMap::default();
        for (&(to, from, wraps), &times) in &self.seen {
            // In three of four steps in which it was late, and more than once if there are several steps.
            let often = times * 4 >= self.late[to] * 3 && (times > 1 || samples.steps().len() == 1);
            // Within a step only activities launched before it, and of the step before only activities launched after it.
            let order =
                launched(samples, calls, activities, from).cmp(&launched(samples, calls, activities, to));
            if often && order.is_lt() != wraps {
                let candidate = (times, Reverse(from), wraps);
                let slot = best.entry(to).or_insert(candidate);
                *slot = (*slot).max(candidate);
            }
        }
        best.into_iter().map(|(to, (_, from, wraps))| StreamDependency {
            from: from.0,
            to,
            inferred: true,
            wraps,
        })
    }
}

/// Returns the activities that have a time in a step, in time order.
fn in_time(
    activities: &TiSlice<ActivityId, Activity>,
    time: impl Fn(ActivityId) -> Option<Nanos>,
) -> Vec<(Nanos, ActivityId)> {
    let mut order: Vec<(Nanos, ActivityId)> =
        activities.keys().filter_map(|activity| Some((time(activity)?, activity))).collect();
    order.sort_unstable();
    order
}

/// Returns the launch time of an activity in the first step that has one, since the beginning of the step.
fn launched(
    samples: &Samples,
    calls: &TiSlice<CallId, Call>,
    activities: &TiSlice<ActivityId, Activity>,
    activity: ActivityId,
) -> (Nanos, ActivityId) {
    let end = calls[activities[activity].call].end;
    let time = samples.steps().find_map(|step| Some(samples.mark(step, end)? - samples.start(step)));
    (time.unwrap_or(Nanos::ZERO), activity)
}
