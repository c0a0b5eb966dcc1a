//! Positions in a step where parameters are gathered and gradients reduced.

use rustc_hash::FxHashSet;
use steptime_aten::Arg;
use steptime_step::{Call, NewOp, OpId, Place, TensorId};

use super::gather::{all_gather, copy_out, function, wait_for};
use super::hooks;
use super::reduce;
use super::shards::{Memory, Shards};
use super::units::Unit;
use super::{ALL_GATHER, COPY_IN, FullySharded, REDUCE, streams_wait};
use crate::data_parallel::copies_inputs;
use crate::new_ops::{self, op};
use crate::passes::Passes;
use crate::repeated_tensors::Names;

/// The patch under construction.
pub(super) struct PatchBuilder<'a, 's, 'p> {
    memory: Memory<'s, 'p>,
    passes: &'a Passes,
    units: &'a [(Unit, Shards)],
    rule: &'a FullySharded,
}

impl<'a, 's, 'p> PatchBuilder<'a, 's, 'p> {
    pub fn new(
        memory: Memory<'s, 'p>,
        passes: &'a Passes,
        units: &'a [(Unit, Shards)],
        rule: &'a FullySharded,
    ) -> PatchBuilder<'a, 's, 'p> {
        PatchBuilder { memory, passes, units, rule }
    }

    /// Gathers parameters before each block, and frees them after it.
    pub fn forward(&mut self) {
        let step = self.memory.step;
        let forward = &self.passes.forward;
        let Some(&first) = forward.iter().find(|&&op| !copies_inputs(step, op)).or(forward.first()) else {
            return;
        };
        let inputs = NewOp::around("FSDP::inputs_to_device", Vec::new()).taking(hooks::INPUTS.cost(0));
        let waits = vec![streams_wait(COPY_IN, 0), streams_wait(ALL_GATHER, 0), inputs];
        let root = NewOp::around("FSDP::root_pre_forward", waits).taking(hooks::ROOT_PRE_FORWARD.cost(0));
        self.put(Place::Before(first), root);
        let units = self.units;
        // The gather of the whole model comes before all blocks.
        let whole = units.iter().filter(|(unit, _)| unit.name.is_none());
        for (unit, shards) in whole.chain(units.iter().filter(|(unit, _)| unit.name.is_some())) {
            let Some([begin, end]) = unit.forward else { continue };
            let name = unit.name.as_deref();
            let (gather, all) = all_gather(&mut self.memory, shards, name, self.rule.ranks);
            let whole: Vec<TensorId> = shards.all.iter().map(|shard| shard.whole).collect();
            let out = copy_out(&mut self.memory, shards, (all, &whole), (name, self.rule.ranks));
            let mut inside = vec![gather, out, streams_wait(COPY_IN, 0), streams_wait(ALL_GATHER, 0)];
            if let Some(input) = unit.input.filter(|_| unit.passes_on && name.is_some()) {
                inside.push(self.registered(input));
            }
            let pre = NewOp::around(&function("pre_forward", name), inside);
            let count = shards.all.len();
            let at = if name.is_some() { forward[begin] } else { first };
            self.put(Place::Before(at), pre.taking(hooks::PRE_FORWARD.cost(count)));
            let post = NewOp::around(&function("post_forward", name), Vec::new());
            self.put(Place::After(forward[end]), post.taking(hooks::POST_FORWARD.cost(count)));
        }
    }

    /// The op that registers FSDP's callback on the gradient of a block's input.
    fn registered(&mut self, input: TensorId) -> NewOp {
        let row = &self.memory.step.tensors[input];
        let viewed = self.memory.within(row.value.clone(), row.storage);
        let shape = new_ops::ints(&row.value.shape);
        let view = op("aten::view", vec![Arg::Tensor(input), shape], viewed);
        let view = op("aten::view_as", vec![Arg::Tensor(input), Arg::Tensor(input)], viewed).with(vec![view]);
        let call = Call { inputs: vec![Arg::Tensor(input)], ..Call::default() };
        NewOp::new("RegisterPostBackwardFunction", call).with(vec![view]).taking(hooks::REGISTER.cost(0))
    }

    /// Gathers parameters again before each block's gradients, and reduces these after.
    pub fn backward(&mut self) {
        let mut order: Vec<usize> =
            (0..self.units.len()).filter(|&at| self.units[at].0.backward.is_some()).collect();
        order.sort_by_key(|&at| self.units[at].0.backward);
        let mut gathered: Vec<Option<TensorId>> = vec![None; self.units.len()];
        let mut names = self.names();
        for (turn, &at) in order.iter().enumerate() {
            self.pre_backward(at, order.get(turn + 1).copied(), &mut gathered, &mut names);
        }
        self.rename(names);
        let mut first = true;
        let mut last = Vec::new();
        for &at in &order {
            let (unit, shards) = &self.units[at];
            let Some([_, end]) = unit.backward else { continue };
            if !(unit.passes_on && unit.name.is_some() && unit.input.is_some()) {
                last.push(at);
                continue;
            }
            let inside = reduce::after(&mut self.memory, unit, shards, self.rule.ranks, &mut first);
            let called = new_ops::function("RegisterPostBackwardFunctionBackward", &[], inside);
            let called = called.taking(hooks::REGISTERED.cost(0));
            self.put(Place::After(self.passes.backward[end]), called);
        }
        let Some(end) = order.iter().filter_map(|&at| self.units[at].0.backward).map(|[_, end]| end).max()
        else {
            return;
        };
        let mut inside = Vec::new();
        // The whole model comes last.
        last.sort_by_key(|&at| self.units[at].0.name.is_none());
        for at in last {
            let (unit, shards) = &self.units[at];
            inside.extend(reduce::after(&mut self.memory, unit, shards, self.rule.ranks, &mut first));
        }
        inside.extend(self.units.iter().map(|_| wait_for(REDUCE)));
        let callback = NewOp::around("FSDP::root_post_backward_callback", inside);
        let thread = self.memory.step.ops[self.passes.backward[end]].thread;
        let on_thread = |op: &&OpId| self.memory.step.ops[**op].thread == thread;
        let very_last =
            self.passes.backward.iter().rfind(on_thread).copied().unwrap_or(self.passes.backward[end]);
        // Of ops inserted after the same op, the later one comes first.
        let at = self.memory.patch.insert.iter().position(|(place, _)| *place == Place::After(very_last));
        let callback = (Place::After(very_last), callback.taking(hooks::ROOT_POST_BACKWARD.cost(0)));
        self.memory.patch.insert.insert(at.unwrap_or(self.memory.patch.insert.len()), callback);
    }

    /// The tensors that functions of the backward pass take, in new memory where it was gathered again.
    fn names(&mut self) -> Names<'s> {
        let step = self.memory.step;
        let again = self.units.iter().enumerate().filter(|(at, _)| self.is_gathered_again(*at));
        let wholes = again.flat_map(|(_, (_, shards))| shards.all.iter().map(|shard| shard.whole));
        let remade: FxHashSet<_> = wholes.filter_map(|id| step.tensors[id].storage).collect();
        let first = self.memory.next_storage;
        self.memory.next_storage += remade.len() as u32;
        Names::new(step, &[], remade, first)
    }

    fn rename(&mut self, mut names: Names<'s>) {
        let step = self.memory.step;
        for op in self.passes.backward.iter().flat_map(|&function| step.subtree(function)) {
            let Some(call) = step.ops[op].call.as_deref() else { continue };
            if call.takes().chain(call.gives()).any(|tensor| names.is_remade(tensor)) {
                let patch = &mut *self.memory.patch;
                let call = call.with(&mut |id| names.for_saved(id, patch));
                patch.change.push((op, call));
            }
        }
    }

    fn is_gathered_again(&self, at: usize) -> bool {
        self.rule.reshard && self.units[at].0.name.is_some()
    }

    fn pre_backward(
        &mut self,
        at: usize,
        next: Option<usize>,
        gathered: &mut [Option<TensorId>],
        names: &mut Names<'s>,
    ) {
        let units = self.units;
        let (unit, shards) = &units[at];
        let (name, ranks) = (unit.name.as_deref(), self.rule.ranks);
        let Some([first, _]) = unit.backward else { return };
        let mut inside = Vec::new();
        if self.is_gathered_again(at) {
            let all = gathered[at].unwrap_or_else(|| {
                let (gather, all) = all_gather(&mut self.memory, shards, name, ranks);
                inside.push(gather);
                all
            });
            let patch = &mut *self.memory.patch;
            let again: Vec<TensorId> =
                shards.all.iter().map(|shard| names.for_saved(shard.whole, patch)).collect();
            inside.push(copy_out(&mut self.memory, shards, (all, &again), (name, ranks)));
            inside.extend([streams_wait(COPY_IN, 0), streams_wait(ALL_GATHER, 0)]);
        }
        if let Some(next) = next.filter(|&next| self.is_gathered_again(next)) {
            let (unit, shards) = &units[next];
            let name = unit.name.as_deref();
            let (gather, all) = all_gather(&mut self.memory, shards, name, ranks);
            gathered[next] = Some(all);
            let label = format!("FSDP::backward_prefetch for {}", name.unwrap_or_default());
            inside.push(NewOp::around(&label, vec![gather]).taking(hooks::PREFETCH.cost(0)));
        }
        let pre = NewOp::around(&function("pre_backward", name), inside);
        let function = self.passes.backward[first];
        let place = match self.memory.step.ops[function].children.first() {
            Some(&child) => Place::Before(child),
            None => Place::LastIn(function),
        };
        self.put(place, pre.taking(hooks::PRE_BACKWARD.cost(shards.all.len())));
    }

    fn put(&mut self, place: Place, op: NewOp) {
        self.memory.patch.insert.push((place, op));
    }
}
