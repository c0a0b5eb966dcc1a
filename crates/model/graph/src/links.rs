//! The join of calls and device activities, by correlation.

use rustc_hash::FxHashMap;
use steptime_trace::Trace;

/// Correlation -> device activities, in order of their beginning.
pub(crate) struct Links {
    sorted: Vec<u32>,
    ranges: FxHashMap<u64, (u32, u32)>,
    /// Of the correlations that many calls and many activities have: the first call, which gets them all.
    crowded: FxHashMap<u64, u32>,
}

/// A runtime call and the driver calls below it may have one correlation, and a graph's launch many activities. Where
/// more than this many of both have one, it says nothing of who launched what.
const MANY: u32 = 8;

impl Links {
    pub(crate) fn of(trace: &Trace) -> Links {
        let activities = &trace.activities;
        let mut sorted: Vec<u32> = (0..activities.len() as u32).collect();
        sorted.sort_by_key(|&a| (activities.correlation[a as usize], activities.start[a as usize]));
        let mut ranges = FxHashMap::default();
        let mut from = 0;
        while from < sorted.len() {
            let correlation = activities.correlation[sorted[from] as usize];
            let len = sorted[from..]
                .iter()
                .take_while(|&&a| activities.correlation[a as usize] == correlation)
                .count();
            if correlation != 0 {
                ranges.insert(correlation, (from as u32, (from + len) as u32));
            }
            from += len;
        }
        Links { crowded: crowded(trace, &ranges), sorted, ranges }
    }

    pub(crate) fn of_call(&self, trace: &Trace, call: u32) -> &[u32] {
        let correlation = trace.calls.correlation[call as usize];
        if self.crowded.get(&correlation).is_some_and(|&first| first != call) {
            return &[];
        }
        self.ranges.get(&correlation).map_or(&[], |&(from, to)| &self.sorted[from as usize..to as usize])
    }
}

fn crowded(trace: &Trace, ranges: &FxHashMap<u64, (u32, u32)>) -> FxHashMap<u64, u32> {
    let mut calls: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
    for (call, correlation) in (0u32..).zip(&trace.calls.correlation) {
        if ranges.get(correlation).is_some_and(|&(from, to)| to - from > MANY) {
            calls.entry(*correlation).or_insert((call, 0)).1 += 1;
        }
    }
    let crowded = calls.into_iter().filter(|(_, (_, count))| *count > MANY);
    crowded.map(|(correlation, (first, _))| (correlation, first)).collect()
}
