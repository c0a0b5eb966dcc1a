//! What a stretch of the critical path is called, and the part of the step it belongs to.

use steptime::graph::{MarkKind, Phase, StepGraph};
use steptime::sim::critical::Place;

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
        Place::Device(activity) | Place::Launch(activity) => {
            graph.names.get(graph.activities[activity as usize].name)
        }
        Place::Return(mark) => graph.names.get(graph.mark_name(mark)),
        Place::Host(mark) if is_hand_off(graph, mark) => "thread hand-off",
        Place::Host(mark) => {
            let around = match graph.marks[mark as usize].kind {
                MarkKind::OpEnd(op) => Some(op),
                _ => graph.enclosing_op(mark),
            };
            match around.map(|op| graph.top_level(op)) {
                Some(top) if !graph.ops[top as usize].annotation => graph.op_name(top),
                _ => "between ops",
            }
        }
    }
}

/// Whether a mark of another thread lets this one come.
pub fn is_hand_off(graph: &StepGraph, mark: u32) -> bool {
    let row = &graph.marks[mark as usize];
    graph.marks[row.after as usize].thread != row.thread
}

/// The part of the step: a gap between ops belongs to the op it leads to.
pub fn phase(graph: &StepGraph, place: Place) -> Phase {
    let op = match place {
        Place::Device(activity) | Place::Launch(activity) => {
            graph.calls[graph.activities[activity as usize].call as usize].op
        }
        Place::Host(mark) | Place::Return(mark) => match graph.marks[mark as usize].kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => Some(op),
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => graph.calls[call as usize].op,
        },
    };
    op.map_or(Phase::Other, |op| graph.ops[op as usize].phase)
}
