//! Assignment of ops to the phases of a training step.

use crate::graph::StepGraph;
use crate::ids::{HostThreadId, MarkId, OpId};
use crate::names::{CopyDirection, CopyName, EventName};
use crate::tables::{Phase, Role};
use steptime_trace::ActivityKind;
use typed_index_collections::TiVec;

impl StepGraph {
    /// Sets the phase of every op, from names, threads and hand-offs.
    pub fn assign_phases(&mut self) {
        assign(self);
    }
}

/// Sets the phase of every op. With gradient accumulation, a forward pass may follow a backward pass. An optimizer may run
/// the forward and backward pass as a closure; their ops keep their own phase.
pub(crate) fn assign(graph: &mut StepGraph) {
    let input_ends = end_of_input(graph);
    let backward_ends = end_of_backward(graph);
    let before_backward = |mark: MarkId| backward_ends.is_none_or(|end| mark < end);
    let mut phases: TiVec<OpId, Phase> = TiVec::with_capacity(graph.ops.len());
    // Innermost optimizer step that each op is in, or is.
    let mut steps: TiVec<OpId, Option<OpId>> = TiVec::with_capacity(graph.ops.len());
    for (at, op) in graph.ops.iter_enumerated() {
        let inherited = op.parent.map_or(Phase::Other, |parent| phases[parent]);
        let name = EventName::parse(graph.names.get(op.name));
        let on_main = op.thread == HostThreadId::MAIN;
        let around = op.parent.and_then(|parent| steps[parent]);
        steps.push(if name.is_optimizer() { Some(at) } else { around });
        let own_part = || around.is_none_or(|step| !closes_over(graph, step, op.begin, backward_ends));
        let phase = if graph.threads[op.thread].role == Role::Autograd
            || name.is_backward()
            || inherited == Phase::Backward
        {
            Phase::Backward
        } else if name.is_optimizer() || (inherited == Phase::Optimizer && own_part()) {
            Phase::Optimizer
        } else if !on_main {
            Phase::Other
        } else if input_ends.is_some_and(|end| op.end <= end) {
            Phase::Input
        } else if before_backward(op.begin) {
            Phase::Forward
        } else {
            Phase::Other
        };
        phases.push(phase);
    }
    for (op, phase) in graph.ops.iter_mut().zip(phases) {
        op.phase = phase;
    }
}

/// Whether an op that begins at `mark` belongs to a closure that the optimizer's step runs: the backward pass ends after
/// the op and within that step.
fn closes_over(graph: &StepGraph, step: OpId, mark: MarkId, backward_ends: Option<MarkId>) -> bool {
    backward_ends.is_some_and(|end| mark < end && end <= graph.ops[step].end)
}

/// Returns the mark that ends the last copy to the device before the first kernel of the main thread.
fn end_of_input(graph: &StepGraph) -> Option<MarkId> {
    let mut end = None;
    for call in graph.calls.iter().filter(|call| call.thread == HostThreadId::MAIN) {
        for activity in call.activities().map(|activity| &graph.activities[activity]) {
            let copy = || CopyName::parse(graph.names.get(activity.name));
            match activity.kind {
                ActivityKind::Memcpy if copy().direction == CopyDirection::HostToDevice => {
                    end = Some(call.op.map_or(call.end, |op| graph.ops[graph.top_level(op)].end));
                }
                ActivityKind::Kernel => return end,
                _ => {}
            }
        }
    }
    None
}

/// Returns the end of the step's last backward pass on the main thread: the mark that waits for the backward thread, or the
/// end of the last function that the engine ran on the main thread itself.
fn end_of_backward(graph: &StepGraph) -> Option<MarkId> {
    let main = graph.threads.first()?;
    let handed_back = main.first_mark.until(main.end_mark).rev().find(|&mark| {
        let row = &graph.marks[mark];
        let from = &graph.marks[row.after];
        !row.wraps && graph.threads[from.thread].role == Role::Autograd
    });
    let on_main = graph.ops.iter().filter(|op| {
        op.thread == HostThreadId::MAIN && EventName::parse(graph.names.get(op.name)).is_engine()
    });
    handed_back.max(on_main.map(|op| op.end).max())
}
