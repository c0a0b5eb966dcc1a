//! The ops of a segment again, in the backward pass.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashSet;
use steptime_graph::execution::StorageId;
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr};

use super::forward::Forward;
use super::hooks;
use crate::repeated_tensors::{Names, free_storage};

/// The patch under construction, segment by segment.
pub(super) struct Recompute<'f> {
    forward: &'f Forward<'f>,
    pub patch: Patch,
    /// Backward ops that take recomputed memory.
    changed: BTreeMap<OpId, Call>,
    next_storage: u32,
    /// Number of ops that run again, and bytes that are not kept.
    pub ops: usize,
    pub bytes: u64,
}

impl<'f> Recompute<'f> {
    pub fn new(forward: &'f Forward<'f>, rule: &'static str) -> Recompute<'f> {
        let next_storage = free_storage(forward.step);
        let patch = Patch::new(rule);
        Recompute { forward, patch, changed: BTreeMap::new(), next_storage, ops: 0, bytes: 0 }
    }

    /// Repeats the ops at some places before the first function that takes memory needed only by them and by the backward pass. Returns whether there
    /// is such a function.
    pub fn segment(&mut self, places: Range<usize>) -> bool {
        let forward = self.forward;
        let needed = forward.saved_of(&places);
        // Memory that later ops take is kept.
        let is_kept =
            |storage: &StorageId| forward.taken_last.get(storage).is_some_and(|&last| last >= places.end);
        let own: FxHashSet<StorageId> = needed.keys().copied().filter(|storage| !is_kept(storage)).collect();
        let takes = |function: &OpId| forward.taken(*function).any(|storage| own.contains(&storage));
        let Some(first) = forward.functions.iter().position(takes) else { return false };
        let Some(before) = unpacks(forward.step, forward.functions[first], &own) else { return false };
        // The repeated stretch ends with the last op that writes needed memory.
        let end = needed.values().map(|at| at + 1).max().unwrap_or(places.start);
        let roots = &forward.roots[places.start..end];
        let remade = forward.made.iter().filter(|(_, (at, _))| (places.start..end).contains(at));
        let remade = remade.map(|(storage, _)| *storage).collect();
        let mut names = Names::new(forward.step, roots, remade, self.next_storage);
        for &root in roots {
            let again = NewOp::repeat(forward.step, root, &mut |id| names.for_repeated(id, &mut self.patch));
            self.patch.insert.push((Place::Before(before), again));
            self.ops += forward.step.subtree(root).len();
        }
        for &function in &forward.functions[first..] {
            for op in forward.step.subtree(function) {
                let Some(call) = &forward.step.ops[op].call else { continue };
                if call.takes().chain(call.gives()).any(|tensor| names.is_remade(tensor)) {
                    let call = self.changed.remove(&op).unwrap_or_else(|| Call::clone(call));
                    self.changed.insert(op, call.with(&mut |id| names.for_saved(id, &mut self.patch)));
                }
            }
        }
        self.patch.script.extend(hooks::costs(forward, places, first));
        self.next_storage = names.next_storage;
        self.bytes +=
            own.iter().filter_map(|storage| forward.made.get(storage)).map(|(_, bytes)| bytes).sum::<u64>();
        true
    }

    pub fn done(mut self) -> Patch {
        self.patch.change = std::mem::take(&mut self.changed).into_iter().collect();
        self.patch
    }
}

/// The op of a function before which saved memory is recomputed: the outermost op inside the function itself.
fn unpacks(step: &StepIr, function: OpId, own: &FxHashSet<StorageId>) -> Option<OpId> {
    let takes = |op: &OpId| {
        let call = step.ops[*op].call.as_deref();
        let mut storages = call.into_iter().flat_map(Call::takes).filter_map(|id| step.tensors[id].storage);
        storages.any(|storage| own.contains(&storage))
    };
    let mut at = step.subtree(function).into_iter().find(takes)?;
    while let Some(parent) = step.ops[at].parent.filter(|&parent| step.ops[parent].name.starts_with("aten::"))
    {
        at = parent;
    }
    (at != function).then_some(at)
}
