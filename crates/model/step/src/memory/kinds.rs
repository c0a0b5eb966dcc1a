//! Kinds of pieces of memory.

use steptime_aten::is_weight;
use steptime_graph::TiVec;

use super::enclosing_functions::EnclosingFunctions;
use super::lifetime::Life;
use super::order::Order;
use super::pieces::Pieces;
use crate::ids::{OpId, TensorId};
use crate::step::StepIr;

/// The op that joins gradients of sharded parameters for other ranks, after which they are freed, and the op that splits the sum.
const PUT: &str = "fsdp::chunk_cat";
const PART: &str = "aten::as_strided";

/// Purpose of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Weights: tensors that the optimizer changes and the model takes, and frozen ones.
    Parameters,
    /// Gradients of parameters.
    Gradients,
    /// Other optimizer state that is kept from step to step.
    Optimizer,
    /// All other tensors: those saved by functions for their gradients, the batch, buffers.
    Activations,
    /// Workspaces of libraries, and spare bytes of the allocator's blocks.
    Workspace,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 5] =
        [Kind::Parameters, Kind::Gradients, Kind::Optimizer, Kind::Activations, Kind::Workspace];

    /// Name.
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
pub(super) fn find(
    step: &StepIr,
    order: &Order,
    within: &TiVec<OpId, EnclosingFunctions>,
    pieces: &Pieces,
    lives: &[Option<Life>],
) -> Vec<Kind> {
    let mut by_optimizer = vec![false; lives.len()];
    let mut by_others = vec![false; lives.len()];
    let mut gradient = vec![false; lives.len()];
    let mut gone = vec![false; lives.len()];
    let mut weight = vec![false; lives.len()];
    let older = |piece: usize| lives[piece].is_some_and(|life| life.made.is_none());
    for &op in &order.ended {
        let Some(call) = &step.ops[op].call else { continue };
        let EnclosingFunctions { stepping, adding, fused, reducing } = within[op];
        let name = &step.ops[op].name;
        for (at, argument) in call.inputs.iter().enumerate() {
            let pieces = argument.tensors().iter().flat_map(|&tensor| pieces.all(tensor));
            pieces.filter(|&piece| older(piece)).for_each(|piece| weight[piece] |= is_weight(name, at));
        }
        for (at, tensor) in call.takes().enumerate() {
            let stepping = stepping || fused && step.tensors[tensor].value.dtype.is_float();
            for piece in pieces.all(tensor) {
                by_optimizer[piece] |= stepping;
                by_others[piece] |= !stepping && !adding;
                gradient[piece] |= reducing && name == PART;
                gone[piece] |= reducing && name == PUT && at + 1 < call.takes().count();
            }
        }
        let kept = if adding { stored_gradient(step, op) } else { Vec::new() };
        for piece in kept.into_iter().flat_map(|tensor| pieces.all(tensor)) {
            gradient[piece] = true;
        }
    }
    let kind = |piece: usize| {
        let older = older(piece);
        match (gradient[piece] && !gone[piece], by_optimizer[piece] && older, by_others[piece]) {
            (true, ..) => Kind::Gradients,
            (_, true, true) => Kind::Parameters,
            (_, true, false) => Kind::Optimizer,
            // Frozen: the optimizer does not update it.
            _ if older && weight[piece] => Kind::Parameters,
            _ => Kind::Activations,
        }
    };
    (0..lives.len()).map(kind).collect()
}

/// The gradient stored by an op within a function that accumulates one: its results, which are the incoming gradient, a copy of it, or the sum of old
/// and new. A function without ops stores its arguments.
fn stored_gradient(step: &StepIr, op: OpId) -> Vec<TensorId> {
    let row = &step.ops[op];
    let Some(call) = &row.call else { return Vec::new() };
    match (step.event(op).is_accumulation(), row.children.is_empty()) {
        (false, _) => call.gives().collect(),
        (true, true) => call.takes().collect(),
        (true, false) => Vec::new(),
    }
}
