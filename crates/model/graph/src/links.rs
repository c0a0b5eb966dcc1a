//! The join of calls and device activities, by correlation.

use rustc_hash::FxHashMap;
use steptime_trace::Trace;

/// Correlation -> device activities, in order of their beginning.
pub(crate) struct Links {
    sorted: Vec<u32>,
    ranges: FxHashMap<u64, (u32, u32)>,
}

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
        Links { sorted, ranges }
    }

    pub(crate) fn of_call(&self, trace: &Trace, call: u32) -> &[u32] {
        let correlation = trace.calls.correlation[call as usize];
        self.ranges.get(&correlation).map_or(&[], |&(from, to)| &self.sorted[from as usize..to as usize])
    }
}
