//! What each op is inside of.

use steptime_graph::TiVec;

use crate::ids::OpId;
use crate::step::Step;

/// What the names of functions contain that update the tables of fused bags.
const FUSED: [&str; 2] = ["_PoolBackward", "CppNode<SplitLookupFunction_"];

/// What the name of a function begins with that reduces gradients of sharded parameters.
const REDUCING: &str = "FSDP::post_backward_reduce";

/// What an op is, or is inside of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Within {
    /// An optimizer's update of the parameters.
    pub stepping: bool,
    /// A function that adds a gradient to that of a parameter.
    pub adding: bool,
    /// A function that updates the tables of fused bags.
    pub fused: bool,
    /// What adds gradients of several ranks up, of which each keeps its part.
    pub reducing: bool,
}

/// For each op what it is inside of, by one walk from the outermost ops inwards.
pub(super) fn of(step: &Step, running: &[OpId]) -> TiVec<OpId, Within> {
    let mut within: TiVec<OpId, Within> = vec![Within::default(); step.ops.len()].into();
    for &op in running {
        let (row, event) = (&step.ops[op], step.event(op));
        let around = row.parent.map(|parent| within[parent]).unwrap_or_default();
        within[op] = Within {
            stepping: around.stepping || event.is_optimizer_step(),
            adding: around.adding || event.is_accumulation(),
            reducing: around.reducing || row.name.starts_with(REDUCING),
            fused: around.fused || FUSED.iter().any(|name| row.name.contains(name)),
        };
    }
    within
}
