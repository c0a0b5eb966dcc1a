//! Ops of further batches: copies of those of the first, with their own tensors, that add to its gradients.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Arg;
use steptime_graph::execution::StorageId;
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId};

use super::pass::Pass;
use crate::repeated_tensors::{Names, calls, free_storage};

/// The op that adds a further gradient to that of the first batch.
const ADD: &str = "aten::add_";

/// The patch under construction, round by round.
pub(super) struct Rounds<'s> {
    step: &'s StepIr,
    pub patch: Patch,
    next_storage: u32,
    /// Number of ops that run again, and number of gradients that are added to earlier ones.
    pub ops: usize,
    pub adds: usize,
}

impl<'s> Rounds<'s> {
    pub fn new(step: &'s StepIr, rule: &'static str) -> Rounds<'s> {
        Rounds { step, patch: Patch::new(rule), next_storage: free_storage(step), ops: 0, adds: 0 }
    }

    /// Repeats a batch's ops after all earlier rounds.
    pub fn add(&mut self, pass: &Pass, round: u32) {
        let (step, roots) = (self.step, pass.ops());
        let kept = stored_gradients(step, &roots);
        let mut names = Names::new(step, &roots, allocated(step, &roots), self.next_storage);
        for thread in [&pass.script, &pass.engine] {
            let Some(&last) = thread.last() else { continue };
            let mut again = Vec::with_capacity(thread.len());
            for &root in thread {
                self.ops += step.subtree(root).len();
                let copy = NewOp::repeat(step, root, &mut |id| names.for_repeated(id, &mut self.patch));
                again.push(self.adding(copy, &kept).in_round(round));
            }
            // Each copy is inserted right after the last op: the last inserted one comes first.
            self.patch.insert.extend(again.into_iter().rev().map(|op| (Place::After(last), op)));
        }
        self.next_storage = names.next_storage;
    }

    /// The same op, which adds to the gradient of the first batch instead of storing its own.
    fn adding(&mut self, mut op: NewOp, kept: &FxHashMap<OpId, StoredGradient>) -> NewOp {
        if let Some(kept) = op.again.and_then(|again| kept.get(&again)) {
            self.adds += 1;
            let comes = op.children.iter().find_map(|child| child.call.as_ref()?.takes().next());
            let comes = comes.unwrap_or(kept.comes);
            let inputs = vec![Arg::Tensor(kept.gradient), Arg::Tensor(comes), Arg::Int(1)];
            let outputs = vec![Arg::Tensor(kept.gradient)];
            let add = NewOp::new(ADD, Call { inputs, outputs, ..Call::default() });
            return op.with(vec![add]);
        }
        op.children = op.children.into_iter().map(|child| self.adding(child, kept)).collect();
        op
    }
}

/// A parameter's gradient, as stored by a function.
struct StoredGradient {
    /// The incoming gradient.
    comes: TensorId,
    /// The stored tensor: a view of the incoming one, or a copy.
    gradient: TensorId,
}

/// The functions that accumulate gradients of parameters.
pub(super) fn functions(step: &StepIr, roots: &[OpId]) -> Vec<OpId> {
    let within = roots.iter().flat_map(|&root| step.subtree(root));
    within.filter(|&op| step.event(op).is_accumulation()).collect()
}

/// The gradient stored by each of these functions.
fn stored_gradients(step: &StepIr, roots: &[OpId]) -> FxHashMap<OpId, StoredGradient> {
    let found = functions(step, roots).into_iter().filter_map(|op| {
        let mut calls = step.ops[op].children.iter().filter_map(|&child| step.ops[child].call.as_deref());
        let comes = calls.clone().next()?.takes().next()?;
        let gradient = calls.rfind(|call| call.gives().next().is_some())?.gives().next()?;
        Some((op, StoredGradient { comes, gradient }))
    });
    found.collect()
}

/// Memory that some ops allocate: every round has its own.
fn allocated(step: &StepIr, roots: &[OpId]) -> FxHashSet<StorageId> {
    let (mut made, mut older) = (FxHashSet::default(), FxHashSet::default());
    for call in roots.iter().flat_map(|&root| calls(step, root)) {
        let storages = |ids: &mut dyn Iterator<Item = TensorId>| -> Vec<StorageId> {
            ids.filter_map(|id| step.tensors[id].storage).collect()
        };
        older.extend(storages(&mut call.takes()).into_iter().filter(|at| !made.contains(at)));
        made.extend(storages(&mut call.gives()).into_iter().filter(|at| !older.contains(at)));
    }
    made
}
