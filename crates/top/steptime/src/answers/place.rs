//! What a stretch of the critical path is called, and the part of the step it belongs to.

use steptime_graph::{MarkKind, Phase, StepGraph};
use steptime_sim::critical::Place;

/// Where it runs: `host`, `device`, `launch` or `return`.
pub fn kind(place: Place) -> &'static str {
    match place {
        Place::Host(_) => "host",
        Place::Device(_) => "device",
        Place::Launch(_) => "launch",
        Place::Return(_) => "return",
    }
}

/// What runs: the top-level op on the host, the kernel on the device, the call that waits.
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

/// The part of the step: a gap between ops belongs to the op it leads to.
pub fn phase(graph: &StepGraph, place: Place) -> Phase {
    match place {
        Place::Device(activity) | Place::Launch(activity) => {
            let op = graph.calls[graph.activities[activity].call].op;
            op.map_or(Phase::Other, |op| graph.ops[op].phase)
        }
        Place::Host(mark) | Place::Return(mark) => graph.phase_of_mark(mark),
    }
}
