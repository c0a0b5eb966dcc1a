//! A step that is changed by many patches in turn.

use rustc_hash::FxHashSet;
use steptime_graph::TiVec;

use crate::error::Error;
use crate::ids::{OpId, TensorId};
use crate::patch::Patch;
use crate::step::StepIr;
use crate::uses::{Uses, new_outputs};

/// A copy of a step that patches change, with the producers and consumers of its tensors. The time of a patch depends on its own ops and tensors, not
/// on those of the step. Nothing is checked: [`StepIr::applied_in_turn`] checks all patches together.
#[derive(Debug, Clone)]
pub struct Draft {
    step: StepIr,
    uses: Uses,
    /// All ops that make each tensor, in the order in which they begin.
    makers: TiVec<TensorId, Vec<OpId>>,
    /// Ops that no longer run.
    gone: FxHashSet<OpId>,
}

impl Draft {
    /// A draft of a step, unchanged.
    #[must_use]
    pub fn from_step(step: &StepIr) -> Draft {
        Draft { uses: Uses::find(step), makers: makers(step), step: step.clone(), gone: FxHashSet::default() }
    }

    /// The step after the patches so far.
    #[must_use]
    pub fn step(&self) -> &StepIr {
        &self.step
    }

    /// Current producers and consumers of its tensors, equal to those of [`Uses::find`].
    #[must_use]
    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Changes the step by a patch, without checks.
    ///
    /// # Errors
    /// Where the patch names an unknown op. The draft is then partly changed.
    pub fn patch(&mut self, patch: &Patch) -> Result<(), Error> {
        if !patch.lift.is_empty() {
            self.step = self.step.patched(patch)?;
            (self.uses, self.makers) = (Uses::find(&self.step), makers(&self.step));
            return Ok(());
        }
        let known = |op: &&OpId| self.step.ops.get(**op).is_some();
        let removed = patch.remove.iter().filter(known).flat_map(|&op| self.step.subtree(op));
        let removed: FxHashSet<OpId> = removed.filter(|op| !self.gone.contains(op)).collect();
        let changed = patch.change.iter().map(|(op, _)| op).filter(known).copied();
        let changed: FxHashSet<OpId> =
            changed.filter(|op| !self.gone.contains(op) && !removed.contains(op)).collect();
        let before: Vec<OpId> = removed.iter().chain(&changed).copied().collect();
        let first_new = self.step.ops.next_key();
        self.forget(&before);
        self.step.patch(patch)?;
        self.gone.extend(removed);
        self.makers.resize(self.step.tensors.len(), Vec::new());
        self.uses.grow(self.step.tensors.len());
        let new = first_new.until(self.step.ops.next_key());
        let new = new.filter(|&op| !self.step.around(op).any(|around| self.gone.contains(&around)));
        let after: Vec<OpId> = new.chain(changed).collect();
        self.learn(&after);
        for (tensor, _) in &patch.reshape {
            for &op in self.uses.consumers(*tensor).iter().chain(&self.makers[*tensor]) {
                self.step.ops[op].touch(patch.rule);
            }
        }
        Ok(())
    }

    /// Removes ops from the producers and consumers of their tensors.
    fn forget(&mut self, ops: &[OpId]) {
        let all: FxHashSet<OpId> = ops.iter().copied().collect();
        let (mut taken, mut given) = (FxHashSet::default(), FxHashSet::default());
        for call in ops.iter().filter_map(|&op| self.step.ops[op].call.as_deref()) {
            taken.extend(call.takes());
            given.extend(call.gives());
        }
        for tensor in taken {
            self.uses.consumers_mut(tensor).retain(|op| !all.contains(op));
        }
        for tensor in given {
            self.makers[tensor].retain(|op| !all.contains(op));
            self.uses.set_producer(tensor, self.makers[tensor].last().copied());
        }
    }

    /// Adds running ops to the producers and consumers of their tensors.
    fn learn(&mut self, ops: &[OpId]) {
        for &op in ops {
            let Some(call) = self.step.ops[op].call.clone() else { continue };
            for tensor in call.takes() {
                let list = self.uses.consumers_mut(tensor);
                let at = list.partition_point(|&other| self.step.order(other, op).is_le());
                list.insert(at, op);
            }
            for tensor in new_outputs(&call) {
                let list = &mut self.makers[tensor];
                let at = list.partition_point(|&other| self.step.order(other, op).is_le());
                list.insert(at, op);
                self.uses.set_producer(tensor, list.last().copied());
            }
        }
    }
}

fn makers(step: &StepIr) -> TiVec<TensorId, Vec<OpId>> {
    let mut makers: TiVec<TensorId, Vec<OpId>> = vec![Vec::new(); step.tensors.len()].into();
    for op in step.running() {
        let call = step.ops[op].call.as_deref();
        call.into_iter().flat_map(new_outputs).for_each(|tensor| makers[tensor].push(op));
    }
    makers
}
