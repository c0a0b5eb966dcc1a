//! Lifetimes of pieces of memory.

use steptime_graph::TiVec;
use steptime_graph::names::EventName;

use super::enclosing_functions::EnclosingFunctions;
use super::lifetime::Life;
use super::order::Order;
use super::pieces::Pieces;
use super::sparse::PARTS;
use crate::call::Call;
use crate::ids::OpId;
use crate::step::StepIr;

/// Prefix of the names of PyTorch's own ops.
const OP: &str = "aten::";
/// Names of events around compiled code. It makes its tensors without recorded ops.
const COMPILED: [&str; 3] = ["Torch-Compiled Region", "CompiledFx", "CompiledFunction"];
/// Kernels of compiled code.
const COMPILED_KERNEL: &str = "triton_";

/// The lifetime of each piece, from its uses alone; `None` without uses.
pub(super) fn find(
    step: &StepIr,
    order: &Order,
    (running, within): (&[OpId], &TiVec<OpId, EnclosingFunctions>),
    pieces: &Pieces,
) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; pieces.bytes.len()];
    let functions = functions(step, order, running);
    let mut taken: Vec<usize> = Vec::new();
    let mut first: Vec<Option<OpId>> = vec![None; lives.len()];
    let mut stepped: Vec<bool> = vec![false; lives.len()];
    // By their ends: an op inside another comes before it, so that the first that returns a piece is the innermost.
    for &op in &order.ended {
        let (Some([begin, end]), Some(call)) = (order.spans[op], &step.ops[op].call) else { continue };
        taken.clear();
        taken.extend(call.takes().flat_map(|tensor| pieces.all(tensor)));
        // Memory that an op makes unrecorded in the former place of another piece.
        let reused = |lives: &[Option<Life>], piece: usize| {
            let Some(life) = lives[piece] else { return false };
            let takes =
                |call: &Call| call.takes().flat_map(|tensor| pieces.all(tensor)).any(|own| own == piece);
            outer(step, order, op).any(|(from, outer)| life.first < from && !takes(outer))
        };
        for &piece in &taken {
            if reused(&lives, piece) {
                continue;
            }
            let life = lives[piece].get_or_insert(Life { made: None, first: begin, last: end });
            life.first = life.first.min(begin);
            first[piece].get_or_insert(op);
            stepped[piece] |= within[op].stepping;
            let until = functions[op].filter(|[from, _]| life.first < *from).map_or(end, |[_, until]| until);
            life.last = life.last.max(until);
        }
        for piece in call.gives().flat_map(|tensor| pieces.all(tensor)) {
            if reused(&lives, piece) {
                continue;
            }
            let life = lives[piece].get_or_insert(Life { made: Some(begin), first: begin, last: end });
            // A piece that is used inside an op that returns it, and does not take it, was made there.
            if !taken.contains(&piece) && begin <= life.first {
                life.made = life.made.or(Some(begin));
                life.first = begin;
            }
            life.last = life.last.max(used_until(step, order, op, end));
        }
    }
    for (piece, life) in lives.iter_mut().enumerate() {
        let Some(life) = life.as_mut().filter(|life| life.made.is_none()) else { continue };
        // The op that made it no longer runs, or was not recorded.
        let unseen = first[piece].is_some_and(|first| is_compiled(step, first)) && !stepped[piece];
        if pieces.made[piece] || unseen {
            life.made = Some(life.first);
        }
    }
    lives
}

/// Earliest end of use of the results of an op that ends at `end`: the parts of a sparse tensor that an op accesses are used by its own kernels.
fn used_until(step: &StepIr, order: &Order, op: OpId, end: usize) -> usize {
    let row = &step.ops[op];
    let around = row.parent.filter(|&around| step.ops[around].name.starts_with(OP));
    let by = around.filter(|_| PARTS.contains(&row.name.as_str()));
    by.and_then(|around| order.spans[around]).map_or(end, |[_, until]| until.max(end))
}

/// Begins and calls of the ops around an op: an op inside another takes inputs of that, or tensors made within it.
fn outer<'s>(step: &'s StepIr, order: &'s Order, op: OpId) -> impl Iterator<Item = (usize, &'s Call)> {
    let called = |op: OpId| Some((order.spans[op]?[0], step.ops[op].call.as_deref()?));
    let around = step.around(op).skip(1);
    around.take_while(|&op| step.ops[op].name.starts_with(OP)).filter_map(called)
}

/// Whether an op is a part of compiled code.
fn is_compiled(step: &StepIr, op: OpId) -> bool {
    let within = |op: OpId| COMPILED.iter().any(|name| step.ops[op].name.contains(name));
    step.ops[op].name.starts_with(COMPILED_KERNEL) || step.around(op).any(within)
}

/// The span of the autograd function that each op is in.
fn functions(step: &StepIr, order: &Order, running: &[OpId]) -> TiVec<OpId, Option<[usize; 2]>> {
    let mut inside: TiVec<OpId, Option<[usize; 2]>> = vec![None; step.ops.len()].into();
    for &op in running {
        let name = &step.ops[op].name;
        // Saved tensors are freed at the end of the function; compiled code frees each tensor after its last use.
        let saves = step.event(op).is_engine() && !COMPILED.iter().any(|compiled| name.contains(compiled));
        let own = saves.then(|| order.spans[op]).flatten();
        let around = step.ops[op].parent.and_then(|parent| inside[parent]);
        inside[op] = around.or(own);
    }
    inside
}

/// Place where gradients are zeroed, and thereby freed.
pub(super) fn zeroed(step: &StepIr, order: &Order) -> Option<usize> {
    let mut found = order.ended.iter().filter(|&&op| step.event(op) == EventName::ZeroGrad);
    found.next().and_then(|&op| order.spans[op]).map(|[_, end]| end)
}
