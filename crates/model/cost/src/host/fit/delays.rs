//! Delays and copies of a host profile, from the recordings of its fit.

use steptime_graph::{Blocking, MarkKind, median};
use steptime_trace::{Bytes, Nanos};

use super::{Training, median_of};
use crate::host::copies::CopyCost;
use crate::host::host_device_delays::Coupling;
use crate::host::profiler::ProfilerCost;
use crate::host::recorded_gaps;

/// Returns the median of the delays between host and device over recordings.
pub(super) fn coupling(recordings: &[&Training<'_>]) -> Coupling {
    let fallback = Coupling::default();
    let each: Vec<Coupling> = recordings.iter().map(|r| Coupling::measure(r.graph, &fallback)).collect();
    let typical = |of: fn(&Coupling) -> f64| median_of(&each.iter().map(of).collect::<Vec<f64>>());
    Coupling {
        launch_to_start_us: typical(|c| c.launch_to_start_us),
        queue_gap_us: typical(|c| c.queue_gap_us),
        sync_own_us: typical(|c| c.sync_own_us),
        sync_return_us: typical(|c| c.sync_return_us),
        copy_lead_us: copy_lead(recordings).unwrap_or(fallback.copy_lead_us),
        queue_depth: fallback.queue_depth,
    }
}

/// Returns the median time from the beginning of a chunked copy's call to its start on an idle device, microseconds.
fn copy_lead(recordings: &[&Training<'_>]) -> Option<f64> {
    let mut leads: Vec<Nanos> = recordings
        .iter()
        .flat_map(|r| r.graph.calls.iter())
        .filter_map(|call| match call.blocking {
            Blocking::Chunked { lead, .. } => lead,
            _ => None,
        })
        .collect();
    median(&mut leads).map(Nanos::as_micros)
}

/// Returns the host time of staged copies, by size.
pub(super) fn copies(recordings: &[&Training<'_>], profiler: &ProfilerCost) -> CopyCost {
    let mut observations: Vec<(Bytes, Nanos)> = Vec::new();
    for recording in recordings {
        let graph = recording.graph;
        for (mark, gap) in recorded_gaps::gaps(graph, profiler).into_iter_enumerated() {
            if let (Some(gap), true) = (gap, recorded_gaps::is_staged_copy(graph, mark))
                && let MarkKind::CallEnd(call) = graph.marks[mark].kind
            {
                let activity = graph.calls[call].first_activity;
                observations.push((graph.activities[activity].bytes, gap));
            }
        }
    }
    CopyCost::fit(&observations)
}
