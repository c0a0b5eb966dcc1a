//! The host gaps of a recording's own samples.

use steptime_graph::{Blocking, CallId, Clock, MarkId, MarkKind, Role, StepGraph, StepId, TiVec, median};
use steptime_trace::Nanos;

use super::host_device_delays::Coupling;
use super::profiler::ProfilerCost;
use super::robust::{mean_of_ranks, quiet_mean, steps_of_ranks};
use super::speed::{Elasticity, Speed, times};
use super::stalls::Stalls;

/// Returns the time of each gap, mark by mark, without the profiler's cost. `None` if no step measured it.
///
/// Waiting for the device is not a cost of the host: the end of a blocking call has a gap of `None`. A launch that always
/// found its queue full gets the time of launches of the same name that did not.
pub fn gaps(graph: &StepGraph, profiler: &ProfilerCost) -> TiVec<MarkId, Option<Nanos>> {
    corrected(graph, profiler, |_| [1.0, 1.0])
}

/// Returns the same, scaled from the host's speed while profiled to its speed in the predicted steps.
pub fn gaps_at(
    graph: &StepGraph,
    profiler: &ProfilerCost,
    speed: &Speed,
    elasticity: &Elasticity,
) -> TiVec<MarkId, Option<Nanos>> {
    let factors =
        |mark| [speed.profiler_factor(graph, mark, elasticity), speed.gap_factor(graph, mark, elasticity)];
    let mut gaps = corrected(graph, profiler, factors);
    for (mark, gap) in gaps.iter_mut_enumerated() {
        *gap = gap.map(|gap| take_off_pulse(graph, mark, gap, speed.between));
    }
    gaps
}

/// Subtracts the recorder's pulse, which runs on the main thread between two profiled steps, from a gap.
pub(super) fn take_off_pulse(graph: &StepGraph, mark: MarkId, gap: Nanos, pulse: Nanos) -> Nanos {
    let row = &graph.marks[mark];
    let between_steps = row.wraps && graph.threads[row.thread].role == Role::Main;
    if between_steps { ProfilerCost::take_off(gap, pulse) } else { gap }
}

/// Subtracts the profiler's cost, times the first factor of a mark, from each gap, and multiplies the rest by the second.
fn corrected(
    graph: &StepGraph,
    profiler: &ProfilerCost,
    factors: impl Fn(MarkId) -> [f64; 2],
) -> TiVec<MarkId, Option<Nanos>> {
    let mut steps: Vec<StepId> = graph.samples.steps().collect();
    if unlike(graph) {
        steps = vec![graph.samples.template()];
    }
    let raw = located(graph, &steps, quiet_mean);
    raw.into_iter_enumerated()
        .zip(profiler.gap_costs(graph))
        .map(|((mark, gap), event)| {
            let [cost, pace] = factors(mark);
            gap.map(|gap| times(ProfilerCost::take_off(gap, times(event, cost)), pace))
        })
        .collect()
}

/// Returns the time of each gap of a typical step, the profiler's cost left in: the mean over the steps with the middle
/// periods, so that the gaps add up to the duration of such a step. If the host ran ahead of the device these are
/// the short ones: the long ones include waits for the device. `None` as in [`gaps`].
pub fn typical_gaps(graph: &StepGraph) -> TiVec<MarkId, Option<Nanos>> {
    let ranks = if graph.samples.clock() == Clock::Device { (0.0, 0.4) } else { (0.4, 0.6) };
    let middle = match unlike(graph) {
        true => vec![graph.samples.template()],
        false => steps_of_ranks(graph, ranks.0, ranks.1),
    };
    let all: Vec<StepId> = graph.samples.steps().collect();
    let typical = located(graph, &middle, |column| mean_of_ranks(column, 0.0, 1.0));
    // Gaps that none of these measured are taken from the other steps.
    let missing = typical.iter().any(Option::is_none);
    let others =
        if missing { located(graph, &all, |column| mean_of_ranks(column, 0.3, 0.7)) } else { TiVec::new() };
    typical.into_iter_enumerated().map(|(mark, gap)| gap.or_else(|| *others.get(mark)?)).collect()
}

/// Whether the steps differ in their ops. A mean over them is not any real step: the times of the typical step are used
/// instead.
fn unlike(graph: &StepGraph) -> bool {
    graph.is_measured() && !graph.coverage.steps_are_alike()
}

/// Returns the location of each gap's samples in some of the steps.
fn located(
    graph: &StepGraph,
    steps: &[StepId],
    location: impl Fn(&mut [Nanos]) -> Option<Nanos>,
) -> TiVec<MarkId, Option<Nanos>> {
    let stalls = Stalls::find(graph, &Coupling::default());
    let mut column = Vec::new();
    graph
        .marks
        .keys()
        .map(|mark| {
            if waits_for_device(graph, mark) {
                return None;
            }
            match (&stalls, graph.marks[mark].kind) {
                (Some(stalls), MarkKind::CallEnd(call)) => unstalled(graph, stalls, call, steps, &mut column),
                _ => collect_of(graph, mark, steps, &mut column),
            }
            // The wait for a batch does not depend on the speed of the host: its median over all steps is used.
            if graph.waits_for_input(mark) {
                collect(graph, mark, &mut column);
                return median(&mut column);
            }
            location(&mut column)
        })
        .collect()
}

/// Collects the samples of a call's own time from the steps in which its queue had room; if it never had, those of
/// all calls of the same name.
fn unstalled(graph: &StepGraph, stalls: &Stalls, call: CallId, steps: &[StepId], column: &mut Vec<Nanos>) {
    let end = graph.calls[call].end;
    let own = |call: CallId, end: MarkId, column: &mut Vec<Nanos>| {
        let row = &graph.marks[end];
        let free = steps.iter().copied().filter(|&step| !stalls.at(step, call));
        column.extend(free.filter_map(|step| graph.samples.gap(step, end, row)));
    };
    column.clear();
    own(call, end, column);
    if column.is_empty() {
        let api = graph.calls[call].api;
        let like = graph.calls.iter_enumerated().filter(|(_, other)| other.api == api);
        for (index, other) in like {
            own(index, other.end, column);
        }
    }
}

/// Collects all samples of a gap.
pub fn collect(graph: &StepGraph, mark: MarkId, column: &mut Vec<Nanos>) {
    let row = &graph.marks[mark];
    column.clear();
    column.extend(graph.samples.steps().filter_map(|step| graph.samples.gap(step, mark, row)));
}

/// Collects the samples of a gap in some of the steps.
fn collect_of(graph: &StepGraph, mark: MarkId, steps: &[StepId], column: &mut Vec<Nanos>) {
    let row = &graph.marks[mark];
    column.clear();
    column.extend(steps.iter().filter_map(|&step| graph.samples.gap(step, mark, row)));
}

/// Whether the gap before a mark is the inside of a call that waits for the device.
pub fn waits_for_device(graph: &StepGraph, mark: MarkId) -> bool {
    match graph.marks[mark].kind {
        MarkKind::CallEnd(call) => {
            let call = &graph.calls[call];
            call.blocking != Blocking::Never || call.kind.synchronises()
        }
        _ => false,
    }
}

/// Whether the gap before a mark is the inside of a pageable copy that only stages. Its cost depends on its bytes.
pub fn is_staged_copy(graph: &StepGraph, mark: MarkId) -> bool {
    match graph.marks[mark].kind {
        MarkKind::CallEnd(call) => {
            let call = &graph.calls[call];
            call.blocking == Blocking::Never && call.is_pageable_copy(graph)
        }
        _ => false,
    }
}
