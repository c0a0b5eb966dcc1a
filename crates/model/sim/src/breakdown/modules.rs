//! Breakdown of a step's time by module of the model.

use steptime_graph::{ModuleId, Modules, OpId, Phase, StepGraph, TiVec};
use steptime_trace::Nanos;

use crate::critical::{Stretch, op_of};
use crate::timeline::Timeline;

/// Time of a module in a step, with all modules inside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModuleCost {
    /// Host time of its ops, from their beginnings to their ends.
    pub host: Nanos,
    /// Time of the device activities that its forward pass launched.
    pub forward: Nanos,
    /// Time of the device activities that its backward pass launched.
    pub backward: Nanos,
    /// Its part of the critical path.
    pub critical: Nanos,
}

/// Returns the time by module, in the order of the modules.
///
/// # Panics
/// If the modules belong to another graph.
pub fn by_module(
    graph: &StepGraph,
    timeline: &Timeline,
    path: &[Stretch],
    modules: &Modules,
) -> TiVec<ModuleId, ModuleCost> {
    let mut costs: TiVec<ModuleId, ModuleCost> = vec![ModuleCost::default(); modules.list.len()].into();
    let mut add = |op: OpId, entry: &dyn Fn(&mut ModuleCost)| {
        let around = std::iter::successors(modules.of[op], |&module| modules.list[module].parent);
        around.for_each(|module| entry(&mut costs[module]));
    };
    for (op, row) in graph.ops.iter_enumerated() {
        let inner = row.parent.is_some_and(|parent| modules.of[parent].is_some());
        if !inner {
            let time = timeline.marks[row.end] - timeline.marks[row.begin];
            add(op, &|cost| cost.host += time);
        }
    }
    for (at, activity) in graph.activities.iter_enumerated() {
        if let Some(op) = graph.calls[activity.call].op {
            let time = timeline.ends[at] - timeline.starts[at];
            match graph.ops[op].phase {
                Phase::Backward => add(op, &|cost| cost.backward += time),
                _ => add(op, &|cost| cost.forward += time),
            }
        }
    }
    for stretch in path {
        if let Some(op) = op_of(graph, stretch.place) {
            add(op, &|cost| cost.critical += stretch.to - stretch.from);
        }
    }
    costs
}
