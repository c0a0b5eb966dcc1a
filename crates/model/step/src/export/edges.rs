//! Dependencies: through a tensor, by a hand-off between host threads, by a wait of a stream for another.

use rustc_hash::FxHashSet;
use steptime_graph::{ActivityId, MarkId};

use super::Export;
use crate::ids::{OpId, TensorId};
use crate::step::StepIr;
use crate::uses::Uses;

/// A tensor from its producer to one of its consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Data {
    /// The innermost op that makes it.
    pub from: OpId,
    /// An innermost op that takes it.
    pub to: OpId,
    /// The tensor.
    pub tensor: TensorId,
}

/// An op that waits for another: its thread, or its stream, does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Wait {
    pub from: OpId,
    pub to: OpId,
    /// Whether the awaited op is of the previous step.
    pub wraps: bool,
}

/// Tensors from the innermost op that makes them to the innermost ops that take them.
#[must_use]
pub fn data(step: &StepIr, uses: &Uses) -> Vec<Data> {
    let mut edges = Vec::new();
    for to in step.running() {
        let Some(call) = &step.ops[to].call else { continue };
        let passed_on: FxHashSet<TensorId> = step.ops[to]
            .children
            .iter()
            .filter_map(|&child| step.ops[child].call.as_ref())
            .flat_map(|call| call.takes())
            .collect();
        let mut seen = FxHashSet::default();
        for tensor in call.takes().filter(|tensor| !passed_on.contains(tensor)) {
            let from = uses.producer(tensor).filter(|&from| !step.is_within(from, to) && seen.insert(tensor));
            edges.extend(from.map(|from| Data { from, to, tensor }));
        }
    }
    edges
}

/// Waits of host threads for others.
pub(super) fn hand_offs(export: &Export<'_>) -> Vec<Wait> {
    let graph = &export.scheduled.graph;
    let op = |mark: MarkId| graph.op_of_mark(mark).map(|op| export.scheduled.ops[op]);
    let handed = graph.marks.keys().filter(|&mark| graph.is_hand_off(mark));
    let wait = |mark: MarkId| {
        let row = &graph.marks[mark];
        Some(Wait { from: op(row.after)?, to: op(mark)?, wraps: row.wraps })
    };
    handed.filter_map(wait).collect()
}

/// Waits of streams for others, from the op that launched the awaited work to the op that launched the waiting work.
pub(super) fn stream_waits(export: &Export<'_>) -> Vec<Wait> {
    let graph = &export.scheduled.graph;
    let op = |activity: ActivityId| {
        let op = graph.calls[graph.activities[activity].call].op?;
        Some(export.scheduled.ops[op])
    };
    let waits = graph.waits.iter();
    waits.filter_map(|row| Some(Wait { from: op(row.from)?, to: op(row.to)?, wraps: row.wraps })).collect()
}
