//! Enclosing functions of each op.

use steptime_graph::TiVec;

use super::order::Order;
use crate::ids::OpId;
use crate::step::StepIr;

/// Parts of the names of functions that update the tables of fused bags.
const FUSED: [&str; 2] = ["_PoolBackward", "CppNode<SplitLookupFunction_"];

/// Prefix of the names of functions that reduce gradients of sharded parameters.
const REDUCING: &str = "FSDP::post_backward_reduce";

/// Functions that an op is, or is inside of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EnclosingFunctions {
    /// An optimizer's update of the parameters.
    pub stepping: bool,
    /// A function that accumulates a gradient into that of a parameter.
    pub adding: bool,
    /// A function that updates the tables of fused bags.
    pub fused: bool,
    /// A reduction of gradients over ranks, of which each keeps its part.
    pub reducing: bool,
}

/// The enclosing functions of each op, by one walk from the outermost ops inwards.
pub(super) fn find(step: &StepIr, running: &[OpId], order: &Order) -> TiVec<OpId, EnclosingFunctions> {
    let mut within: TiVec<OpId, EnclosingFunctions> =
        vec![EnclosingFunctions::default(); step.ops.len()].into();
    let begins = |op: OpId| order.spans[op].map(|[begin, _]| begin);
    let is_accumulation = |op: &OpId| step.event(*op).is_accumulation();
    let accumulated: Vec<usize> =
        running.iter().copied().filter(is_accumulation).filter_map(begins).collect();
    // Begin of the update of the enclosing optimizer step: after the passes of its closure, where it has one.
    let mut updates: TiVec<OpId, usize> = vec![usize::MAX; step.ops.len()].into();
    for &op in running {
        let (row, event) = (&step.ops[op], step.event(op));
        let around = row.parent.map(|parent| within[parent]).unwrap_or_default();
        updates[op] = match order.spans[op] {
            Some([begin, end]) if event.is_optimizer_step() => {
                accumulated.iter().copied().filter(|at| (begin..end).contains(at)).max().unwrap_or(begin)
            }
            _ => row.parent.map_or(usize::MAX, |parent| updates[parent]),
        };
        within[op] = EnclosingFunctions {
            stepping: begins(op).is_some_and(|begin| begin >= updates[op]),
            adding: around.adding || event.is_accumulation(),
            reducing: around.reducing || row.name.starts_with(REDUCING),
            fused: around.fused || FUSED.iter().any(|name| row.name.contains(name)),
        };
    }
    within
}
