//! The host gaps of a recording's own samples.

use steptime_graph::{ApiKind, Blocking, MarkKind, StepGraph};
use steptime_trace::Nanos;

use super::coupling::Coupling;
use super::profiler::ProfilerCost;
use super::robust::quiet_mean;
use super::stalls::Stalls;

/// The time of each gap, mark by mark, with the profiler's cost taken off. `None` where no step measured it.
///
/// The time a call waits for the device is no cost of the host: the end of a blocking call has a gap of `None`,
/// and a launch that always found its queue full takes what its like take when it is not.
pub fn gaps(graph: &StepGraph, profiler: &ProfilerCost) -> Vec<Option<Nanos>> {
    let parts = profiler.of_gaps(graph);
    let stalls = Stalls::find(graph, &Coupling::default());
    let mut column = Vec::new();
    (0..graph.marks.len() as u32)
        .map(|mark| {
            if waits_for_device(graph, mark) {
                return None;
            }
            match (&stalls, graph.marks[mark as usize].kind) {
                (Some(stalls), MarkKind::CallEnd(call)) => unstalled(graph, stalls, call, &mut column),
                _ => collect(graph, mark, &mut column),
            }
            quiet_mean(&mut column).map(|gap| ProfilerCost::take_off(gap, parts[mark as usize]))
        })
        .collect()
}

/// The samples of a call's own time from the steps in which its queue had room; where it never had, those of
/// all calls of the same name.
fn unstalled(graph: &StepGraph, stalls: &Stalls, call: u32, column: &mut Vec<Nanos>) {
    let end = graph.calls[call as usize].end;
    let own = |call: u32, end: u32, column: &mut Vec<Nanos>| {
        let row = &graph.marks[end as usize];
        let steps = (0..graph.samples.steps()).filter(|&step| !stalls.at(step, call));
        column.extend(steps.filter_map(|step| graph.samples.gap(step, end, row)));
    };
    column.clear();
    own(call, end, column);
    if column.is_empty() {
        let api = graph.calls[call as usize].api;
        let like = graph.calls.iter().enumerate().filter(|(_, other)| other.api == api);
        for (index, other) in like {
            own(index as u32, other.end, column);
        }
    }
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
