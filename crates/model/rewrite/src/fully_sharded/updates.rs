//! The optimizer on a rank's parts of the parameters.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use steptime_aten::{Arg, Device, Tensor};
use steptime_graph::execution::StorageId;
use steptime_step::{Call, OpId, Patch, Step, TensorId};

use super::hooks;
use super::shards::{Shards, part_of};
use super::trained::Trained;
use super::units::Unit;
use crate::passes::{Passes, takes};

/// What ops on parts take in place of wholes.
pub(super) struct Parts {
    /// For the memory of parameters and gradients: the shape of the whole, and the part.
    parts: FxHashMap<StorageId, TensorId>,
    /// Shapes of parameters, and of their parts.
    shapes: FxHashMap<Vec<i64>, Vec<i64>>,
}

impl Parts {
    pub fn of(step: &Step, units: &[(Unit, Shards)], ranks: u32) -> Parts {
        let mut all = Parts { parts: FxHashMap::default(), shapes: FxHashMap::default() };
        for (unit, shards) in units {
            for shard in &shards.all {
                let row = &step.tensors[shard.whole];
                all.parts.extend(row.storage.map(|storage| (storage, shard.part)));
                all.shapes.insert(row.value.shape.to_vec(), part_of(&row.value.shape, ranks));
            }
            for (at, gradient) in &unit.gradients {
                let parameter = shards.all[*at].whole;
                let memory = Trained { parameter, gradient: *gradient }.memory(step);
                let known: Vec<StorageId> =
                    memory.into_iter().filter(|storage| !all.parts.contains_key(storage)).collect();
                all.parts.extend(known.into_iter().map(|storage| (storage, shards.all[*at].gradient)));
            }
        }
        all
    }

    /// Puts the changes of optimizers, and of what else the script does with gradients, into a patch.
    pub fn update(&self, step: &Step, passes: &Passes, patch: &mut Patch) {
        let own = |op: OpId| {
            let memory = takes(step, op).into_iter().filter_map(|id| step.tensors[id].storage);
            memory.into_iter().any(|storage| self.parts.contains_key(&storage))
        };
        let forward: FxHashSet<OpId> = passes.forward.iter().copied().collect();
        let others = passes
            .script
            .iter()
            .copied()
            .filter(|&op| !forward.contains(&op) && !step.event(op).is_engine() && own(op));
        let updates: Vec<OpId> =
            step.running().into_iter().filter(|&op| step.event(op).is_optimizer_step()).collect();
        let mut reshaped: FxHashSet<TensorId> = FxHashSet::default();
        for root in updates.iter().copied().chain(others) {
            let mut widest = 0;
            for op in step.subtree(root) {
                let Some(call) = step.ops[op].call.as_deref() else { continue };
                self.reshape(step, call, &mut reshaped);
                if let Some(call) = self.changed(step, call) {
                    patch.change.push((op, call));
                }
                let listed: usize = call.inputs.iter().map(|arg| self.listed(step, arg)).sum();
                if listed > 0 && step.outermost(op) == op {
                    let hook = if call.outputs.is_empty() { hooks::LIST } else { hooks::NEW_LIST };
                    patch.script.push((op, hook.of(listed)));
                    let longest = call.inputs.iter().map(|arg| self.listed(step, arg)).max();
                    widest = widest.max(longest.unwrap_or(0));
                }
            }
            if widest > 0 && step.event(root).is_optimizer_step() {
                patch.script.push((root, hooks::OPTIMIZER.of(widest)));
            }
        }
        for tensor in reshaped {
            let value = &step.tensors[tensor].value;
            if let Some(part) = self.shapes.get(&value.shape[..]) {
                let cut = Tensor { shape: SmallVec::from_slice(part), ..value.clone() };
                patch.reshape.push((tensor, cut));
            }
        }
        patch.reshape.sort_by_key(|(tensor, _)| *tensor);
    }

    /// How many tensors of the size of parameters a list has.
    fn listed(&self, step: &Step, arg: &Arg<TensorId>) -> usize {
        let Arg::Tensors(list) = arg else { return 0 };
        list.iter().filter(|&&id| self.shapes.contains_key(&step.tensors[id].value.shape[..])).count()
    }

    /// States and what is made of them have the shapes of parameters.
    fn reshape(&self, step: &Step, call: &Call, reshaped: &mut FxHashSet<TensorId>) {
        for id in call.takes().chain(call.gives()) {
            let row = &step.tensors[id];
            let other = row.storage.is_none_or(|storage| !self.parts.contains_key(&storage));
            if other && row.value.device == Device::Cuda && self.shapes.contains_key(&row.value.shape[..]) {
                reshaped.insert(id);
            }
        }
    }

    /// A call with parts in place of parameters and gradients, and sizes of parts; `None` where it has neither.
    fn changed(&self, step: &Step, call: &Call) -> Option<Call> {
        let mut now = call.with(&mut |id| {
            let row = &step.tensors[id];
            let part = row.storage.and_then(|storage| self.parts.get(&storage));
            part.copied().filter(|_| self.shapes.contains_key(&row.value.shape[..])).unwrap_or(id)
        });
        for arg in &mut now.inputs {
            if let Arg::Ints(sizes) = arg
                && let Some(part) = self.shapes.get(&sizes[..])
            {
                *sizes = SmallVec::from_slice(part);
            }
        }
        (now != *call).then_some(now)
    }
}
