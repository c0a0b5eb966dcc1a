//! Host overheads T1 to T5.

use serde::Serialize;
use steptime_cost::ProfilerCost;
use steptime_cost::overheads::{Overhead, Overheads};
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

/// One kind of overhead: of one op or call, or of all where `name` is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverheadEntry {
    /// `T1` to `T5`, or `hand_off`.
    pub kind: &'static str,
    /// The op (T2, T3, T5) or the call (T4).
    pub name: Option<String>,
    /// Number of samples, over all steps.
    pub count: usize,
    /// Their median, microseconds.
    pub median_us: f64,
    /// Their tenth percentile, microseconds.
    pub p10_us: f64,
    /// Their ninetieth percentile, microseconds.
    pub p90_us: f64,
}

/// The kinds, each with its key in JSON and its meaning.
pub const KINDS: [(Overhead, &str, &str); 6] = [
    (Overhead::T1, "T1", "between ops"),
    (Overhead::T2, "T2", "before an op's first launch"),
    (Overhead::T3, "T3", "after its last"),
    (Overhead::T4, "T4", "inside a call"),
    (Overhead::T5, "T5", "between launches"),
    (Overhead::HandOff, "hand_off", "from thread to thread"),
];

/// All overheads, the profiler's cost taken off: each kind as a whole, then by name, most frequent first.
#[must_use]
pub fn measure(graph: &StepGraph, profiler: &ProfilerCost) -> Vec<OverheadEntry> {
    let overheads = Overheads::measured(graph, profiler);
    let mut rows = Vec::new();
    for (kind, key, _) in KINDS {
        rows.extend(row(key, None, overheads.samples_of_kind(kind)));
        if kind == Overhead::T1 {
            continue;
        }
        let of_kind = overheads.iter().filter(|&(other, ..)| other == kind);
        let mut named: Vec<OverheadEntry> =
            of_kind.filter_map(|(_, name, times)| row(key, Some(name), times.to_vec())).collect();
        named.sort_by(|a, b| (b.count, &a.name).cmp(&(a.count, &b.name)));
        rows.extend(named);
    }
    rows
}

fn row(kind: &'static str, name: Option<&str>, mut times: Vec<Nanos>) -> Option<OverheadEntry> {
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    let at = |share: f64| times[(share * last as f64).round() as usize].as_micros();
    Some(OverheadEntry {
        kind,
        name: name.map(str::to_owned),
        count: times.len(),
        median_us: at(0.5),
        p10_us: at(0.1),
        p90_us: at(0.9),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let times = (0..=100).rev().map(|us| Nanos(us * 1000)).collect();
        let row = row("T1", None, times);
        assert!(row.is_some_and(|r| (r.p10_us, r.median_us, r.p90_us) == (10.0, 50.0, 90.0)));
        assert!(super::row("T1", None, Vec::new()).is_none());
    }
}
