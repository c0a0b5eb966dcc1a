//! Names of stretches of the critical path, and their phase of the step.

use steptime_graph::{MarkKind, Phase, StepGraph};
use steptime_sim::critical::Place;

/// Kind of place: `host`, `device`, `launch` or `return`.
pub fn kind(place: Place) -> &'static str {
    match place {
        Place::Host(_) => "host",
        Place::Device(_) => "device",
        Place::Launch(_) => "launch",
        Place::Return(_) => "return",
    }
}

/// Name of the work: the top-level op on the host, the kernel on the device, the call that waits.
pub fn what(graph: &StepGraph, place: Place) -> &str {
    match place {
        Place::Device(activity) | Place::Launch(activity) => graph.names.get(graph.activities[activity].name),
        Place::Return(mark) => graph.names.get(graph.mark_name(mark)),
        Place::Host(mark) if graph.is_hand_off(mark) => "thread hand-off",
        Place::Host(mark) => {
            let around = match graph.marks[mark].kind {
                MarkKind::OpEnd(op) => Some(op),
                _ => graph.enclosing_op(mark),
            };
            match around.map(|op| graph.top_level(op)) {
                Some(top) if !graph.ops[top].annotation => graph.op_name(top),
                _ => "between ops",
            }
        }
    }
}

/// Phase of the step: a gap between ops belongs to the op after it.
pub fn phase(graph: &StepGraph, place: Place) -> Phase {
    match place {
        Place::Device(activity) | Place::Launch(activity) => {
            let op = graph.calls[graph.activities[activity].call].op;
            op.map_or(Phase::Other, |op| graph.ops[op].phase)
        }
        Place::Host(mark) | Place::Return(mark) => graph.phase_of_mark(mark),
    }
}
