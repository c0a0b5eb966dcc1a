//! Join of calls and device activities: by correlation, and by `External id` if the trace has no correlations.

use rustc_hash::FxHashMap;
use steptime_trace::Trace;

use crate::ids::{TraceActivity, TraceCall};
use crate::names::ApiKind;

/// Device activities of each correlation, in order of their beginning.
pub(crate) struct Links {
    sorted: Vec<TraceActivity>,
    ranges: FxHashMap<u64, (u32, u32)>,
    /// For correlations shared by many calls and many activities: the first call. All activities count as launched by it.
    crowded: FxHashMap<u64, TraceCall>,
    /// Activities without a correlation, by the call that has their `External id`.
    by_external_id: FxHashMap<TraceCall, Vec<TraceActivity>>,
}

/// Maximum number of calls, and of activities, that may share one correlation. A runtime call may share it with the driver calls
/// below it, and the launch of a CUDA graph has many activities; with many of both, it does not identify the launching call.
const MANY: u32 = 8;

impl Links {
    pub(crate) fn from_trace(trace: &Trace) -> Links {
        let activities = &trace.activities;
        let mut sorted: Vec<TraceActivity> = (0..activities.len()).map(TraceActivity::from).collect();
        sorted.sort_by_key(|&a| (activities.correlation[a.index()], activities.start[a.index()]));
        let mut ranges = FxHashMap::default();
        let mut from = 0;
        while from < sorted.len() {
            let correlation = activities.correlation[sorted[from].index()];
            let len = sorted[from..]
                .iter()
                .take_while(|&&a| activities.correlation[a.index()] == correlation)
                .count();
            if correlation != 0 {
                ranges.insert(correlation, (from as u32, (from + len) as u32));
            }
            from += len;
        }
        Links { crowded: crowded(trace, &ranges), sorted, ranges, by_external_id: by_external_id(trace) }
    }

    pub(crate) fn activities(&self, trace: &Trace, call: TraceCall) -> &[TraceActivity] {
        let correlation = trace.calls.correlation[call.index()];
        if correlation == 0 {
            return self.by_external_id.get(&call).map_or(&[], |activities| activities);
        }
        if self.crowded.get(&correlation).is_some_and(|&first| first != call) {
            return &[];
        }
        self.ranges.get(&correlation).map_or(&[], |&(from, to)| &self.sorted[from as usize..to as usize])
    }

    /// Returns the same as [`launching_calls`].
    pub(crate) fn launching_calls(&self, trace: &Trace) -> Vec<Option<TraceCall>> {
        let launches: Vec<bool> =
            trace.names.iter().map(|(_, name)| ApiKind::from_name(name).launches()).collect();
        let by_name = |call: TraceCall| launches[trace.calls.name[call.index()].index()];
        let mut found: Vec<Option<TraceCall>> = vec![None; trace.activities.len()];
        for call in (0..trace.calls.len()).map(TraceCall::from) {
            for activity in self.activities(trace, call) {
                let known = &mut found[activity.index()];
                if known.is_none_or(|known| by_name(call) && !by_name(known)) {
                    *known = Some(call);
                }
            }
        }
        found
    }
}

/// Returns for each device activity the call that launched it: of several that share its correlation (a runtime call and the
/// driver calls below it), the first that is a launch by its name.
pub fn launching_calls(trace: &Trace) -> Vec<Option<TraceCall>> {
    Links::from_trace(trace).launching_calls(trace)
}

/// Assigns activities without a correlation to the launching calls without one that have their `External id`, in order of
/// time; the remaining ones belong to the last of these calls.
fn by_external_id(trace: &Trace) -> FxHashMap<TraceCall, Vec<TraceActivity>> {
    let (calls, activities) = (&trace.calls, &trace.activities);
    let mut waiting: FxHashMap<u64, Vec<TraceActivity>> = FxHashMap::default();
    for at in
        (0..activities.len()).filter(|&at| activities.correlation[at] == 0 && activities.external_id[at] != 0)
    {
        waiting.entry(activities.external_id[at]).or_default().push(TraceActivity::from(at));
    }
    let mut found = FxHashMap::default();
    if waiting.is_empty() {
        return found;
    }
    let launches: Vec<bool> =
        trace.names.iter().map(|(_, name)| ApiKind::from_name(name).launches()).collect();
    let mut callers: FxHashMap<u64, Vec<TraceCall>> = FxHashMap::default();
    for at in (0..calls.len()).filter(|&at| calls.correlation[at] == 0 && launches[calls.name[at].index()]) {
        if waiting.contains_key(&calls.external_id[at]) {
            callers.entry(calls.external_id[at]).or_default().push(TraceCall::from(at));
        }
    }
    for (id, mut calls_of_id) in callers {
        let Some(mut own) = waiting.remove(&id) else { continue };
        calls_of_id.sort_by_key(|&call| calls.start[call.index()]);
        own.sort_by_key(|&activity| activities.start[activity.index()]);
        let last = calls_of_id.len() - 1;
        for (at, activity) in own.into_iter().enumerate() {
            found.entry(calls_of_id[at.min(last)]).or_insert_with(Vec::new).push(activity);
        }
    }
    found
}

fn crowded(trace: &Trace, ranges: &FxHashMap<u64, (u32, u32)>) -> FxHashMap<u64, TraceCall> {
    let mut calls: FxHashMap<u64, (TraceCall, u32)> = FxHashMap::default();
    for (call, correlation) in trace.calls.correlation.iter().enumerate() {
        if ranges.get(correlation).is_some_and(|&(from, to)| to - from > MANY) {
            calls.entry(*correlation).or_insert((TraceCall::from(call), 0)).1 += 1;
        }
    }
    let crowded = calls.into_iter().filter(|(_, (_, count))| *count > MANY);
    crowded.map(|(correlation, (first, _))| (correlation, first)).collect()
}
