//! The host gaps of a recording's own samples.

use steptime_graph::{ApiKind, Blocking, MarkKind, StepGraph};
use steptime_trace::Nanos;

use super::profiler::ProfilerCost;
use super::robust::quiet_mean;

/// The time of each gap, mark by mark, with the profiler's cost taken off. `None` where no step measured it.
///
/// The time a call waits for the device is no cost of the host: the end of a blocking call has a gap of `None`.
pub fn gaps(graph: &StepGraph, profiler: &ProfilerCost) -> Vec<Option<Nanos>> {
    let parts = profiler.of_gaps(graph);
    let mut column = Vec::new();
    (0..graph.marks.len() as u32)
        .map(|mark| {
            if waits_for_device(graph, mark) {
                return None;
            }
            collect(graph, mark, &mut column);
            quiet_mean(&mut column).map(|gap| ProfilerCost::take_off(gap, parts[mark as usize]))
        })
        .collect()
}

/// All samples of a gap.
pub fn collect(graph: &StepGraph, mark: u32, column: &mut Vec<Nanos>) {
    let row = &graph.marks[mark as usize];
    column.clear();
    column.extend((0..graph.samples.steps()).filter_map(|step| graph.samples.gap(step, mark, row)));
}

/// Whether the gap before a mark is the inside of a call that waits for the device.
pub fn waits_for_device(graph: &StepGraph, mark: u32) -> bool {
    match graph.marks[mark as usize].kind {
        MarkKind::CallEnd(call) => {
            let call = &graph.calls[call as usize];
            call.blocking != Blocking::Never || call.kind.synchronises()
        }
        _ => false,
    }
}

/// Whether the gap before a mark is the inside of a pageable copy that only stages: its cost goes by bytes.
pub fn is_staged_copy(graph: &StepGraph, mark: u32) -> bool {
    match graph.marks[mark as usize].kind {
        MarkKind::CallEnd(call) => {
            let call = &graph.calls[call as usize];
            matches!(call.kind, ApiKind::Copy | ApiKind::BlockingCopy)
                && call.blocking == Blocking::Never
                && call.activities().len() == 1
                && graph.names.get(graph.activities[call.first_activity as usize].name).contains("Pageable")
        }
        _ => false,
    }
}
