//! Memory that FSDP keeps after its last use by an op: a gathered buffer until the next one is split into parameters, joined gradients until the next
//! ones, and a block's parameters until FSDP frees them.

use super::lifetime::Life;
use super::order::Order;
use super::pieces::Pieces;
use crate::ids::{OpId, TensorId};
use crate::step::StepIr;

/// Prefix of the names of FSDP's functions, and delimiters of a block's name.
const FSDP: &str = "FSDP::";
const BLOCK: [&str; 2] = [" (", ")"];

/// Names of functions, without the block.
const FORWARD: &str = "pre_forward";
const CUT: &str = "all_gather_copy_out";
const FORWARD_ENDS: &str = "post_forward";
const GIVES_BACK: &str = "post_backward_reshard";
const REDUCES: &str = "post_backward_reduce";
const ENDS: &str = "root_post_backward_callback";

/// Names of ops: the split of gathered parts, `(gathered, sizes, dimension, parameters)`, and the join of gradients, `(gradients, dimension, ranks,
/// together)`.
const SPLIT: &str = "fsdp::split_with_sizes_copy";
const TOGETHER: &str = "fsdp::chunk_cat";
const LAST: usize = 3;

/// A function of FSDP.
struct FsdpFunction<'s> {
    op: OpId,
    name: &'s str,
    /// Name of the block; empty for the whole model.
    block: &'s str,
    /// Whether it is called before a block's forward pass.
    forward: bool,
    begin: usize,
    end: usize,
}

/// Extends lifetimes to the times when FSDP frees the pieces.
pub(super) fn keep(
    step: &StepIr,
    order: &Order,
    running: &[OpId],
    pieces: &Pieces,
    lives: &mut [Option<Life>],
) {
    let mut all: Vec<FsdpFunction<'_>> = running.iter().filter_map(|&op| called(step, order, op)).collect();
    all.sort_by_key(|one| one.begin);
    for (at, one) in all.iter().enumerate() {
        let later = &all[at + 1..];
        match one.name {
            CUT => {
                if one.forward {
                    let next = later.iter().find(|next| {
                        next.name == CUT && next.forward || next.name == FORWARD_ENDS && next.block.is_empty()
                    });
                    until(lives, pieces, taken(step, one.op, SPLIT, 0), next.map(|next| next.begin));
                }
                let again = later.iter().any(|next| next.name == CUT && next.block == one.block);
                let ends = if one.forward && again { FORWARD_ENDS } else { GIVES_BACK };
                let end = later.iter().find(|next| next.name == ends && next.block == one.block);
                until(lives, pieces, taken(step, one.op, SPLIT, LAST), end.map(|end| end.begin));
            }
            REDUCES => {
                let next = later.iter().find(|next| next.name == REDUCES).map(|next| next.begin);
                let next = next.or_else(|| all.iter().rfind(|last| last.name == ENDS).map(|last| last.end));
                until(lives, pieces, taken(step, one.op, TOGETHER, LAST), next);
            }
            _ => {}
        }
    }
}

fn called<'s>(step: &'s StepIr, order: &Order, op: OpId) -> Option<FsdpFunction<'s>> {
    let row = &step.ops[op];
    let name = row.name.strip_prefix(FSDP)?;
    let [begin, end] = order.spans[op]?;
    let (name, block) = name.split_once(BLOCK[0]).unwrap_or((name, ""));
    let around = row.parent.and_then(|around| step.ops[around].name.strip_prefix(FSDP));
    let forward = around.is_some_and(|around| around.starts_with(FORWARD));
    Some(FsdpFunction { op, name, block: block.strip_suffix(BLOCK[1]).unwrap_or(block), forward, begin, end })
}

/// Tensors of an argument of ops of some name inside another op.
fn taken(step: &StepIr, within: OpId, name: &str, argument: usize) -> Vec<TensorId> {
    let ops = step.subtree(within).into_iter().filter(|&op| step.ops[op].name == name);
    let arguments = ops.filter_map(|op| step.ops[op].call.as_deref()?.inputs.get(argument));
    arguments.flat_map(|argument| argument.tensors().to_vec()).collect()
}

fn until(lives: &mut [Option<Life>], pieces: &Pieces, tensors: Vec<TensorId>, place: Option<usize>) {
    for piece in tensors.into_iter().flat_map(|tensor| pieces.all(tensor)) {
        if let (Some(life), Some(place)) = (&mut lives[piece], place) {
            life.last = life.last.max(place);
        }
    }
}
