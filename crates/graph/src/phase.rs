//! The parts of a training step.

use crate::graph::{Role, StepGraph};
use steptime_trace::ActivityKind;

/// The part of the step an op belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Phase {
    /// Brings the batch to the device.
    Input,
    /// Computes the loss.
    Forward,
    /// Computes gradients.
    Backward,
    /// Updates parameters and clears gradients.
    Optimizer,
    /// None of these.
    #[default]
    Other,
}

impl Phase {
    /// All parts, in the order of a step.
    pub const ALL: [Phase; 5] =
        [Phase::Input, Phase::Forward, Phase::Backward, Phase::Optimizer, Phase::Other];

    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Input => "input",
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Optimizer => "optimizer",
            Phase::Other => "other",
        }
    }
}

/// The annotations PyTorch itself writes around its optimizers and its backward engine.
const OPTIMIZER: &str = "Optimizer.";
const ENGINE: &str = "autograd::engine::";

impl StepGraph {
    /// Gives every op its part of the step, from names, threads and hand-offs.
    pub fn assign_phases(&mut self) {
        assign(self);
    }
}

/// Gives every op its part of the step.
pub(crate) fn assign(graph: &mut StepGraph) {
    let input_ends = end_of_input(graph);
    let mut phases = Vec::with_capacity(graph.ops.len());
    let mut after_backward = false;
    let handed_back = end_of_backward(graph);
    for op in &graph.ops {
        let inherited = op.parent.map_or(Phase::Other, |parent| phases[parent as usize]);
        let name = graph.names.get(op.name);
        let phase = if graph.threads[op.thread as usize].role == Role::Autograd
            || name.starts_with(ENGINE)
            || inherited == Phase::Backward
        {
            after_backward |= op.thread == 0;
            Phase::Backward
        } else if name.starts_with(OPTIMIZER) || inherited == Phase::Optimizer {
            Phase::Optimizer
        } else if op.thread != 0 {
            Phase::Other
        } else if input_ends.is_some_and(|end| op.end <= end) {
            Phase::Input
        } else if after_backward || handed_back.is_some_and(|mark| op.begin >= mark) {
            Phase::Other
        } else {
            Phase::Forward
        };
        phases.push(phase);
    }
    for (op, phase) in graph.ops.iter_mut().zip(phases) {
        op.phase = phase;
    }
}

/// The mark that ends the last copy to the device before the first kernel of the main thread.
fn end_of_input(graph: &StepGraph) -> Option<u32> {
    let mut end = None;
    for call in graph.calls.iter().filter(|call| call.thread == 0) {
        for activity in &graph.activities[call.activities()] {
            match activity.kind {
                ActivityKind::Memcpy if is_host_to_device(graph.names.get(activity.name)) => {
                    end = Some(call.op.map_or(call.end, |op| graph.ops[graph.top_level(op) as usize].end));
                }
                ActivityKind::Kernel => return end,
                _ => {}
            }
        }
    }
    None
}

fn is_host_to_device(name: &str) -> bool {
    name.contains("HtoD") || name.contains("HostToDevice")
}

/// The first mark of the main thread that the backward thread lets come.
fn end_of_backward(graph: &StepGraph) -> Option<u32> {
    let main = graph.threads.first()?;
    (main.first_mark..main.end_mark).find(|&mark| {
        let row = &graph.marks[mark as usize];
        let from = &graph.marks[row.after as usize];
        !row.wraps && graph.threads[from.thread as usize].role == Role::Autograd
    })
}
