//! Changes of a step.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::{Arg, OpCall, OpSet};
use steptime_graph::execution::StorageId;
use steptime_graph::{HostThreadId, TiVec};

use crate::call::Call;
use crate::error::Error;
use crate::ids::{OpId, TensorId};
use crate::insert::NewOp;
use crate::node_order::NodeOrder;
use crate::shared_call::SharedCall;
use crate::step::{Origin, StepIr};
use crate::tensors::{LifetimeEnd, Tensor};

/// A change of a step by a rule: removals, insertions and changes, with the reason.
#[derive(Debug, Clone, Default)]
pub struct Patch {
    /// Name of the rule.
    pub rule: &'static str,
    /// Description of the change.
    pub why: String,
    /// Assumptions, in words.
    pub doubts: Vec<String>,
    /// Ops to remove, with all ops inside them.
    pub remove: Vec<OpId>,
    /// Ops to insert.
    pub insert: Vec<(Place, NewOp)>,
    /// Ops that get other arguments or settings.
    pub change: Vec<(OpId, Call)>,
    /// Tensors that get another shape, type or layout.
    pub reshape: Vec<(TensorId, steptime_aten::Tensor)>,
    /// Ops that a CUDA graph captures.
    pub capture: Vec<OpId>,
    /// Order of the nodes of CUDA graphs by their data.
    pub nodes: Option<Arc<NodeOrder>>,
    /// Additional host time of the script at an op, in units of the host time of a small op with autograd.
    pub script: Vec<(OpId, f64)>,
    /// Ops that copy for the next step.
    pub ahead: Vec<OpId>,
    /// Ops whose kernels move to another stream, with those of all ops inside them; numbered as [`Op::stream`](crate::Op::stream).
    pub streams: Vec<(OpId, u32)>,
    /// Pairs of an op and one around it that it replaces; the outer one is removed with all other ops inside it.
    pub lift: Vec<(OpId, OpId)>,
    /// Ops that stay as they are, but lose their recorded calls and times: these are derived instead.
    pub derive: Vec<OpId>,
    /// New tensors of the patch, numbered after those of the step.
    tensors: Vec<Tensor>,
}

/// Position of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Directly before another op.
    Before(OpId),
    /// Directly after another op.
    After(OpId),
    /// Inside another op, after all ops there.
    LastIn(OpId),
}

impl Place {
    fn op(self) -> OpId {
        match self {
            Place::Before(op) | Place::After(op) | Place::LastIn(op) => op,
        }
    }
}

impl Patch {
    /// An empty patch.
    #[must_use]
    pub fn new(rule: &'static str) -> Patch {
        Patch { rule, ..Patch::default() }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty()
            && self.insert.is_empty()
            && self.change.is_empty()
            && self.reshape.is_empty()
            && self.capture.is_empty()
            && self.nodes.is_none()
            && self.ahead.is_empty()
            && self.streams.is_empty()
            && self.script.is_empty()
            && self.lift.is_empty()
            && self.derive.is_empty()
    }

    /// Whether any producer or consumer of a tensor changes.
    pub(crate) fn moves_tensors(&self, step: &StepIr) -> bool {
        let same = |(op, now): &(OpId, Call)| {
            let was = step.ops[*op].call.as_deref();
            was.is_some_and(|was| was.takes().eq(now.takes()) && was.gives().eq(now.gives()))
        };
        let of_ops = [self.remove.is_empty(), self.insert.is_empty(), self.lift.is_empty()];
        !(of_ops.iter().all(|none| *none) && self.change.iter().all(same))
    }

    /// A new tensor, for ops that the patch inserts or changes. `step` is the one that the patch will be applied to.
    pub fn tensor(&mut self, step: &StepIr, value: steptime_aten::Tensor) -> TensorId {
        self.tensor_in(step, value, None)
    }

    /// A new tensor in a storage that other tensors share.
    pub fn tensor_in(
        &mut self,
        step: &StepIr,
        value: steptime_aten::Tensor,
        storage: Option<StorageId>,
    ) -> TensorId {
        self.tensors.push(Tensor {
            value,
            storage,
            recorded: None,
            made: false,
            until: LifetimeEnd::LastUse,
        });
        TensorId::from(step.tensors.len() + self.tensors.len() - 1)
    }

    /// The storage of a tensor that the patch added.
    #[must_use]
    pub fn added_storage(&self, step: &StepIr, tensor: TensorId) -> Option<StorageId> {
        self.tensors.get(usize::from(tensor).checked_sub(step.tensors.len())?)?.storage
    }

    /// An op made from a call with descriptions of tensors: each description becomes a new tensor.
    pub fn described(&mut self, step: &StepIr, call: &OpCall) -> NewOp {
        let mut rows = |args: &[Arg]| -> Vec<Arg<TensorId>> {
            args.iter().map(|arg| arg.map(|tensor| self.tensor(step, tensor.clone()))).collect()
        };
        let (inputs, outputs) = (rows(&call.inputs), rows(&call.outputs));
        NewOp::new(&call.name, Call { inputs, outputs, settings: call.settings })
    }

    /// A tensor that the patch added.
    #[must_use]
    pub fn added(&self, step: &StepIr, tensor: TensorId) -> Option<&steptime_aten::Tensor> {
        Some(&self.tensors.get(usize::from(tensor).checked_sub(step.tensors.len())?)?.value)
    }
}

impl StepIr {
    /// Applies a patch and checks the result.
    ///
    /// # Errors
    /// If the result is invalid: a consumed tensor without a producer, inconsistent shapes, an op that consumes a
    /// tensor made later, or devices that do not agree. The step is then unchanged.
    pub fn apply(&mut self, patch: &Patch, ops: &OpSet) -> Result<(), Error> {
        *self = self.applied(patch, ops)?;
        Ok(())
    }

    /// The step with a patch, checked.
    ///
    /// # Errors
    /// As [`StepIr::apply`].
    pub fn applied(&self, patch: &Patch, ops: &OpSet) -> Result<StepIr, Error> {
        self.applied_in_turn(std::slice::from_ref(patch), ops)
    }

    /// The step with patches, each made for the result of the previous ones. The final result is checked, once.
    ///
    /// # Errors
    /// As [`StepIr::apply`].
    pub fn applied_in_turn(&self, patches: &[Patch], ops: &OpSet) -> Result<StepIr, Error> {
        let mut changed = self.clone();
        let mut moves = false;
        for patch in patches {
            moves |= patch.moves_tensors(&changed);
            changed.patch(patch)?;
        }
        changed.touch(patches);
        changed.verify(self, patches, moves, ops)?;
        Ok(changed)
    }

    /// The step with a patch, unchecked: to inspect the result before the patch is applied.
    ///
    /// # Errors
    /// If the patch names an unknown op.
    pub fn patched(&self, patch: &Patch) -> Result<StepIr, Error> {
        let mut changed = self.clone();
        changed.patch(patch)?;
        changed.touch(std::slice::from_ref(patch));
        Ok(changed)
    }

    /// Changes the step by a patch without checks. On an error, the step is partly changed. [`StepIr::touch`] must be called afterwards.
    pub(crate) fn patch(&mut self, patch: &Patch) -> Result<(), Error> {
        self.knows(patch)?;
        self.tensors.extend(patch.tensors.iter().cloned());
        for (tensor, value) in &patch.reshape {
            self.tensors[*tensor].value = value.clone();
        }
        for (op, call) in &patch.change {
            let row = &mut self.ops[*op];
            row.call = Some(call.clone().into());
            if let Some(recorded) = row.origin.recorded() {
                row.origin = Origin::Changed(recorded, patch.rule);
            }
        }
        for &op in &patch.derive {
            self.ops[op].origin = Origin::Inserted(patch.rule);
        }
        self.insert(&patch.insert, patch.rule)?;
        self.remove(&patch.remove);
        for &(inner, outer) in &patch.lift {
            self.lift(inner, outer);
        }
        for &op in &patch.capture {
            self.ops[op].captured = true;
        }
        if let Some(nodes) = &patch.nodes {
            self.nodes = Some(nodes.clone());
        }
        for &(op, more) in &patch.script {
            self.ops[op].script += more;
        }
        for &op in &patch.ahead {
            self.ops[op].ahead = true;
        }
        for &(op, stream) in &patch.streams {
            self.subtree(op).into_iter().for_each(|op| self.ops[op].stream = stream);
        }
        Ok(())
    }

    /// Marks ops as changed where patches of one rule reshaped their tensors.
    fn touch(&mut self, patches: &[Patch]) {
        let reshapes = || patches.iter().flat_map(|patch| &patch.reshape);
        let Some(rule) = patches.iter().find(|patch| !patch.reshape.is_empty()).map(|patch| patch.rule)
        else {
            return;
        };
        let mut reshaped: TiVec<TensorId, bool> = vec![false; self.tensors.len()].into();
        reshapes().for_each(|(tensor, _)| reshaped[*tensor] = true);
        for row in &mut self.ops {
            let touched = |call: &SharedCall| call.takes().chain(call.gives()).any(|tensor| reshaped[tensor]);
            if row.call.as_ref().is_some_and(touched) {
                row.touch(rule);
            }
        }
    }

    /// Checks that the step has the ops that a patch names.
    fn knows(&self, patch: &Patch) -> Result<(), Error> {
        let changed = patch.change.iter().map(|(op, _)| *op);
        let lifted = patch.lift.iter().flat_map(|&(inner, outer)| [inner, outer]);
        let beside = patch.insert.iter().map(|(place, _)| place.op());
        let moved = patch.streams.iter().map(|(op, _)| *op);
        let named = patch.remove.iter().chain(&patch.capture).chain(&patch.derive).copied();
        match named
            .chain(moved)
            .chain(changed)
            .chain(lifted)
            .chain(beside)
            .find(|&op| self.ops.get(op).is_none())
        {
            Some(op) => Err(Error::NoSuchOp { op }),
            None => Ok(()),
        }
    }

    /// Inserts ops next to others or inside them. Each list of siblings is rewritten once, however many ops are inserted into it.
    fn insert(&mut self, new: &[(Place, NewOp)], rule: &'static str) -> Result<(), Error> {
        // For each op with insertions, those before it, in order, and those after it, the last first.
        let mut beside: FxHashMap<OpId, [Vec<OpId>; 2]> = FxHashMap::default();
        let mut inside = Vec::new();
        for (place, op) in new {
            let like = self.ops[place.op()].clone();
            match *place {
                Place::LastIn(around) => inside.push((around, op.add(self, &like, Some(around), rule))),
                Place::Before(by) => {
                    let at = op.add(self, &like, like.parent, rule);
                    beside.entry(by).or_default()[0].push(at);
                }
                Place::After(by) => {
                    let at = op.add(self, &like, like.parent, rule);
                    beside.entry(by).or_default()[1].push(at);
                }
            }
        }
        let lists: FxHashSet<_> = beside.keys().map(|&op| self.list_of(op)).collect();
        for (parent, thread) in lists {
            let siblings = std::mem::take(self.siblings_mut(parent, thread));
            let mut list = Vec::with_capacity(siblings.len());
            for sibling in siblings {
                let [before, after] = beside.remove(&sibling).unwrap_or_default();
                list.extend(before);
                list.push(sibling);
                list.extend(after.into_iter().rev());
            }
            *self.siblings_mut(parent, thread) = list;
        }
        if let Some(&op) = beside.keys().min() {
            return Err(Error::NotRunning { op: self.ops[op].name.clone() });
        }
        for (around, op) in inside {
            self.ops[around].children.push(op);
        }
        Ok(())
    }

    /// The key of the list that contains an op: the op around it, and its thread.
    fn list_of(&self, op: OpId) -> (Option<OpId>, HostThreadId) {
        (self.ops[op].parent, self.ops[op].thread)
    }

    /// Replaces an op by one inside it, which gets the outputs of the outer one.
    fn lift(&mut self, inner: OpId, outer: OpId) {
        let gave = self.ops[outer].call.as_deref().map(|call| call.outputs.clone());
        if let (Some(gave), Some(call)) = (gave, self.ops[inner].call.as_deref_mut()) {
            // A tensor that it writes in place is also an argument.
            for (old, new) in
                call.outputs.iter().flat_map(Arg::tensors).zip(gave.iter().flat_map(Arg::tensors))
            {
                let taken = call.inputs.iter_mut().flat_map(Arg::tensors_mut);
                taken.filter(|tensor| *tensor == old).for_each(|tensor| *tensor = *new);
            }
            call.outputs = gave;
        }
        let (parent, thread) = (self.ops[outer].parent, self.ops[outer].thread);
        self.ops[inner].parent = parent;
        for sibling in self.siblings_mut(parent, thread) {
            if *sibling == outer {
                *sibling = inner;
            }
        }
    }

    fn remove(&mut self, ops: &[OpId]) {
        let gone: FxHashSet<OpId> = ops.iter().copied().collect();
        let lists: FxHashSet<_> = ops.iter().map(|&op| self.list_of(op)).collect();
        for (parent, thread) in lists {
            self.siblings_mut(parent, thread).retain(|sibling| !gone.contains(sibling));
        }
    }
}
