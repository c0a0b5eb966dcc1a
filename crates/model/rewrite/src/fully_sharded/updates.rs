//! The optimizer on a rank's parts of the parameters.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use steptime_aten::{Arg, Device, Tensor};
use steptime_graph::execution::StorageId;
use steptime_graph::names::EventName;
use steptime_step::{Call, OpId, Patch, StepIr, TensorId};

use super::hooks;
use super::shards::{Shards, part_of};
use super::trained_parameters::TrainedParameter;
use super::units::Unit;
use crate::passes::{Passes, takes};
use crate::tensor_groups::TensorGroups;

/// Replacements of whole tensors by parts.
pub(super) struct Parts {
    /// For the memory of parameters and gradients, the part.
    parts: FxHashMap<StorageId, TensorId>,
    /// Groups of tensors that an optimizer takes together: a parameter, its gradient and its states.
    linked: TensorGroups,
    /// For each group, the shapes of its parameter and of the part; `None` where it has several parameters.
    cuts: FxHashMap<usize, Option<Cut>>,
    /// The same by the shape of the parameter, for tensors in no known group.
    shapes: FxHashMap<Vec<i64>, Cut>,
}

/// The shape of a parameter, and of its part.
#[derive(Debug, Clone)]
struct Cut {
    whole: Vec<i64>,
    part: Vec<i64>,
}

impl Parts {
    pub fn find(step: &StepIr, units: &[(Unit, Shards)], ranks: u32) -> Parts {
        let is_update = |op: &OpId| step.is_in(*op, EventName::is_optimizer_step);
        let updates: Vec<OpId> = step.running().into_iter().filter(is_update).collect();
        let mut all = Parts {
            parts: FxHashMap::default(),
            linked: TensorGroups::find(step, &updates),
            cuts: FxHashMap::default(),
            shapes: FxHashMap::default(),
        };
        for (unit, shards) in units {
            for shard in &shards.all {
                let row = &step.tensors[shard.whole];
                all.parts.extend(row.storage.map(|storage| (storage, shard.part)));
                let cut = Cut { whole: row.value.shape.to_vec(), part: part_of(&row.value.shape, ranks) };
                if let Some(set) = all.linked.set(step, shard.whole) {
                    all.cuts.entry(set).and_modify(|one| *one = None).or_insert(Some(cut.clone()));
                }
                all.shapes.insert(cut.whole.clone(), cut);
            }
            for (at, gradient) in &unit.gradients {
                let parameter = shards.all[*at].whole;
                let memory = TrainedParameter { parameter, gradient: *gradient }.memory(step);
                let known: Vec<StorageId> =
                    memory.into_iter().filter(|storage| !all.parts.contains_key(storage)).collect();
                all.parts.extend(known.into_iter().map(|storage| (storage, shards.all[*at].gradient)));
            }
        }
        all
    }

    /// Adds the changes of optimizers, and of other ops of the script on gradients, to a patch.
    pub fn update(&self, step: &StepIr, passes: &Passes, patch: &mut Patch) {
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
                    patch.script.push((op, hook.cost(listed)));
                    let longest = call.inputs.iter().map(|arg| self.listed(step, arg)).max();
                    widest = widest.max(longest.unwrap_or(0));
                }
            }
            if widest > 0 && step.event(root).is_optimizer_step() {
                patch.script.push((root, hooks::OPTIMIZER.cost(widest)));
            }
        }
        for tensor in reshaped {
            let value = &step.tensors[tensor].value;
            if let Some(cut) = self.cut(step, tensor) {
                let part = Tensor { shape: SmallVec::from_slice(&cut.part), ..value.clone() };
                patch.reshape.push((tensor, part));
            }
        }
        patch.reshape.sort_by_key(|(tensor, _)| *tensor);
    }

    /// The cut of a whole tensor: a parameter, its gradient, or a state of its shape.
    fn cut(&self, step: &StepIr, tensor: TensorId) -> Option<&Cut> {
        let shape = &step.tensors[tensor].value.shape;
        let found = match self.linked.set(step, tensor).map(|set| self.cuts.get(&set)) {
            Some(None) => None,
            Some(Some(Some(cut))) => Some(cut),
            Some(Some(None)) | None => self.shapes.get(&shape[..]),
        };
        found.filter(|cut| cut.whole == shape[..])
    }

    /// Number of whole tensors in a list.
    fn listed(&self, step: &StepIr, arg: &Arg<TensorId>) -> usize {
        let Arg::Tensors(list) = arg else { return 0 };
        list.iter().filter(|&&id| self.cut(step, id).is_some()).count()
    }

    /// Collects optimizer states and temporaries with the shapes of parameters.
    fn reshape(&self, step: &StepIr, call: &Call, reshaped: &mut FxHashSet<TensorId>) {
        for id in call.takes().chain(call.gives()) {
            let row = &step.tensors[id];
            let other = row.storage.is_none_or(|storage| !self.parts.contains_key(&storage));
            if other && row.value.device == Device::Cuda && self.cut(step, id).is_some() {
                reshaped.insert(id);
            }
        }
    }

    /// A call with parts in place of parameters and gradients, and sizes of parts; `None` where it has neither.
    fn changed(&self, step: &StepIr, call: &Call) -> Option<Call> {
        let mut now = call.with(&mut |id| {
            let row = &step.tensors[id];
            let part = row.storage.and_then(|storage| self.parts.get(&storage));
            part.copied().filter(|_| self.cut(step, id).is_some()).unwrap_or(id)
        });
        for arg in &mut now.inputs {
            let Arg::Ints(sizes) = arg else { continue };
            let mut wholes = call.takes().chain(call.gives()).filter_map(|id| self.cut(step, id));
            if let Some(cut) = wholes.find(|cut| cut.whole == sizes[..]) {
                *sizes = SmallVec::from_slice(&cut.part);
            }
        }
        (now != *call).then_some(now)
    }
}
