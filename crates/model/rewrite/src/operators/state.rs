//! Optimizer updates and states of tables.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;
use steptime_aten::Tensor;
use steptime_step::{Call, OpId, Patch, StepIr, TensorId};

use super::groups::Group;
use super::table_training;
use crate::tensor_groups::{lists, longest};
use crate::updates::{self, Updates};

/// Bytes of optimizer state that the operators keep for a table. PyTorch does not allocate them.
pub(super) fn bytes(table: &Tensor, optimizer: &str) -> u64 {
    let kept = match optimizer {
        "adagrad" => 1,
        "adam" => 2,
        _ => 0,
    };
    table.bytes().saturating_mul(kept)
}

/// Removes tables from their optimizers, group by group. Lists of tensors are shortened once, after the last group.
pub(super) struct OptimizerRemoval {
    updates: Updates,
    /// For each list of `updates`, the ops inside its op, and the positions of removed tables.
    children: Vec<Vec<OpId>>,
    left: Vec<FxHashSet<usize>>,
    /// Removed tensors of the lists.
    gone: FxHashSet<TensorId>,
    owners: BTreeSet<OpId>,
    /// Number of tables processed so far; those of `updates` are in the order of groups.
    next: usize,
    /// Number of unprocessed groups with an optimizer.
    groups: usize,
}

impl OptimizerRemoval {
    /// The optimizers of a step before any table is removed.
    pub(super) fn find(step: &StepIr, groups: &[Group]) -> OptimizerRemoval {
        let trained = groups.iter().flat_map(Group::trained);
        let updates = updates::find(step, trained.map(|one| one.own.clone()).collect());
        let children = updates.lists.iter().map(|(op, _)| step.ops[*op].children.clone()).collect();
        OptimizerRemoval {
            children,
            left: vec![FxHashSet::default(); updates.lists.len()],
            updates,
            gone: FxHashSet::default(),
            owners: BTreeSet::new(),
            next: 0,
            groups: groups.iter().filter(|group| group.optimizer().is_some()).count(),
        }
    }

    /// Keeps the tables of a group in their optimizer, if they have one.
    pub(super) fn stay(&mut self, group: &Group) {
        self.next += group.trained().count();
        self.groups -= usize::from(group.optimizer().is_some());
    }

    /// Removes the tables of a group from their optimizers. An optimizer without any op left is removed.
    pub(super) fn leave(&mut self, patch: &mut Patch, step: &StepIr, group: &Group) {
        let tables = self.next..self.next + group.trained().count();
        patch.remove.extend(self.updates.alone[tables.clone()].iter().flatten());
        self.owners.extend(tables.clone().filter_map(|table| self.updates.owner(step, table)));
        for (at, (op, places)) in self.updates.lists.iter().enumerate() {
            let Some(call) = &step.ops[*op].call else { continue };
            let places: Vec<usize> = places[tables.clone()].iter().flatten().copied().collect();
            let length = longest(call);
            let full = lists(call).filter(|list| list.len() == length);
            self.gone.extend(full.flat_map(|list| places.iter().map(|&place| list[place])));
            self.left[at].extend(&places);
            if self.left[at].len() == length {
                patch.remove.push(*op);
            } else if length == self.children[at].len() {
                patch.remove.extend(places.iter().map(|&place| self.children[at][place]));
            }
        }
        self.stay(group);
        if self.groups == 0 {
            self.shorten(patch, step);
        }
    }

    /// Shortens lists by their removed tensors, and removes optimizers without any op left.
    pub(super) fn shorten(&mut self, patch: &mut Patch, step: &StepIr) {
        for ((op, _), left) in self.updates.lists.iter().zip(&mut self.left) {
            let left = std::mem::take(left);
            let Some(call) = &step.ops[*op].call else { continue };
            if !left.is_empty() && left.len() < longest(call) {
                let left: Vec<usize> = left.into_iter().collect();
                patch.change.push((*op, updates::without(call, &left)));
            }
        }
        let mut removed: FxHashSet<OpId> = patch.remove.iter().copied().collect();
        for owner in std::mem::take(&mut self.owners) {
            let children = &step.ops[owner].children;
            // Step counts that are read one by one.
            let reads = |op: &OpId| {
                let mut takes = step.ops[*op].call.as_deref().into_iter().flat_map(Call::takes).peekable();
                step.ops[*op].name == "aten::item"
                    && takes.peek().is_some()
                    && takes.all(|taken| self.gone.contains(&taken))
            };
            let mut empty: Vec<OpId> = children.iter().copied().filter(reads).collect();
            removed.extend(&empty);
            if children.iter().all(|child| removed.contains(child)) {
                empty.push(owner);
                let cleared = table_training::zero_grad(step, owner);
                empty.extend(cleared.filter(|&op| step.ops[op].children.is_empty()));
            }
            patch.remove.extend(empty);
        }
    }
}
