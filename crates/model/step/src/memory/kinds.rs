//! What each piece of memory is for.

use steptime_graph::TiVec;

use super::life::Life;
use super::order::Order;
use super::pieces::Pieces;
use super::within::Within;
use crate::ids::OpId;
use crate::step::Step;

/// What a function calls to add a gradient to what a parameter has.
const ADD: &str = "aten::add_";

/// What puts gradients of sharded parameters together for other ranks, after which they are gone, and what parts the sum.
const PUT: &str = "fsdp::chunk_cat";
const PART: &str = "aten::as_strided";

/// What device memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What the optimizer changes and the model takes.
    Parameters,
    /// What parameters are changed by.
    Gradients,
    /// What else the optimizer keeps from step to step.
    Optimizer,
    /// All other tensors: what functions saved for their gradients, the batch, buffers.
    Activations,
    /// What libraries take for themselves.
    Workspace,
}

impl Kind {
    /// All, in order.
    pub const ALL: [Kind; 5] =
        [Kind::Parameters, Kind::Gradients, Kind::Optimizer, Kind::Activations, Kind::Workspace];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Parameters => "parameters",
            Kind::Gradients => "gradients",
            Kind::Optimizer => "optimizer",
            Kind::Activations => "activations",
            Kind::Workspace => "workspace",
        }
    }
}

/// The kind of each piece.
pub(super) fn of(
    step: &Step,
    order: &Order,
    within: &TiVec<OpId, Within>,
    pieces: &Pieces,
    lives: &[Option<Life>],
) -> Vec<Kind> {
    let mut by_optimizer = vec![false; lives.len()];
    let mut by_others = vec![false; lives.len()];
    let mut gradient = vec![false; lives.len()];
    let mut gone = vec![false; lives.len()];
    for &op in &order.ended {
        let Some(call) = &step.ops[op].call else { continue };
        let Within { stepping, adding, fused, reducing } = within[op];
        for (at, tensor) in call.takes().enumerate() {
            let Some(piece) = pieces.of[tensor] else { continue };
            let adding = adding && is_kept(step, op, at);
            let stepping = stepping || fused && step.tensors[tensor].value.dtype.is_float();
            by_optimizer[piece] |= stepping;
            by_others[piece] |= !stepping && !adding;
            gradient[piece] |= adding || reducing && step.ops[op].name == PART;
            gone[piece] |= reducing && step.ops[op].name == PUT && at + 1 < call.takes().count();
        }
    }
    let kind = |(piece, life): (usize, &Option<Life>)| {
        let older = life.is_some_and(|life| life.made.is_none());
        match (gradient[piece] && !gone[piece], by_optimizer[piece] && older, by_others[piece]) {
            (true, ..) => Kind::Gradients,
            (_, true, true) => Kind::Parameters,
            (_, true, false) => Kind::Optimizer,
            _ => Kind::Activations,
        }
    };
    lives.iter().enumerate().map(kind).collect()
}

/// Whether what an op of such a function takes is a gradient from then on: what is added to one is not.
fn is_kept(step: &Step, op: OpId, at: usize) -> bool {
    let adds = |op: OpId| step.ops[op].name == ADD;
    !adds(op) && !step.ops[op].children.iter().any(|&child| adds(child)) || adds(op) && at == 0
}
