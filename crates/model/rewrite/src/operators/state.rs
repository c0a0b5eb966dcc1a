//! What optimizers do for tables, and keep of them.

use rustc_hash::FxHashSet;
use steptime_aten::{Arg, Tensor};
use steptime_step::{Call, OpId, TensorId};

use super::trained::{self, Trained};
use super::views::Views;
use crate::updates;

/// Bytes that an optimizer of the operators keeps of a table. They are no tensors of PyTorch's.
pub(super) fn bytes(table: &Tensor, optimizer: &str) -> u64 {
    let kept = match optimizer {
        "adagrad" => 1,
        "adam" => 2,
        _ => 0,
    };
    table.bytes().saturating_mul(kept)
}

/// Takes tables out of their optimizers. An optimizer that has nothing left goes.
pub(super) fn shorten(views: &mut Views<'_>, trained: &[&Trained]) {
    let step = views.step;
    let updates = updates::of(step, trained.iter().map(|one| one.own.clone()).collect());
    let mut removed: Vec<OpId> = updates.alone.iter().flatten().copied().collect();
    let mut owners: Vec<OpId> = (0..trained.len()).filter_map(|at| updates.owner(step, at)).collect();
    owners.sort_unstable();
    owners.dedup();
    let mut gone: FxHashSet<TensorId> = FxHashSet::default();
    for (op, places) in &updates.lists {
        let Some(call) = &step.ops[*op].call else { continue };
        let places: Vec<usize> = places.iter().flatten().copied().collect();
        let lists = || {
            call.inputs.iter().filter_map(|arg| if let Arg::Tensors(list) = arg { Some(list) } else { None })
        };
        let length = lists().map(Vec::len).max().unwrap_or(0);
        let full = lists().filter(|list| list.len() == length);
        gone.extend(full.flat_map(|list| places.iter().map(|&place| list[place])));
        if length == places.len() {
            removed.push(*op);
            continue;
        }
        views.patch.change.push((*op, updates::without(call, &places)));
        let children = &step.ops[*op].children;
        if length == children.len() {
            removed.extend(places.iter().map(|&place| children[place]));
        }
    }
    for owner in owners {
        let children = &step.ops[owner].children;
        // Counts of steps that are read one by one.
        let reads = |op: OpId| {
            let mut takes = step.ops[op].call.as_deref().into_iter().flat_map(Call::takes).peekable();
            step.ops[op].name == "aten::item"
                && takes.peek().is_some()
                && takes.all(|taken| gone.contains(&taken))
        };
        removed.extend(children.iter().copied().filter(|&op| reads(op)));
        if children.iter().all(|child| removed.contains(child)) {
            removed.push(owner);
            removed.extend(trained::zero_grad(step, owner).filter(|&op| step.ops[op].children.is_empty()));
        }
    }
    views.patch.remove.extend(removed);
}
