//! Types of all tensors while casts are fused.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Dtype;
use steptime_step::{OpId, Patch, StepIr, TensorId, Uses};

use super::cast::{self, Cast};
use super::op_types::OpTypes;
use super::shared_memory::SharedMemory;
use super::{all, in_type};
use crate::nested_uses::is_passed_on;

/// The types of tensors that changed, and the ops that limit them.
pub(super) struct Types<'s> {
    step: &'s StepIr,
    shared: SharedMemory,
    /// Ops with known types that use each tensor.
    users: FxHashMap<TensorId, Vec<OpId>>,
    /// Tensors whose type cannot change.
    fixed: FxHashSet<TensorId>,
    changed: FxHashMap<TensorId, Dtype>,
}

impl<'s> Types<'s> {
    pub fn find(step: &'s StepIr, casts: &[Cast]) -> Types<'s> {
        let uses = Uses::find(step);
        let is_old =
            |&tensor: &TensorId| uses.producer(tensor).is_none() && !uses.consumers(tensor).is_empty();
        let mut types = Types {
            step,
            shared: SharedMemory::find(step),
            users: FxHashMap::default(),
            fixed: step.tensors.keys().filter(is_old).collect(),
            changed: FxHashMap::default(),
        };
        let casts: FxHashSet<OpId> = casts.iter().map(|cast| cast.op).collect();
        for op in step.running() {
            if !step.around(op).any(|around| casts.contains(&around)) {
                types.limit(op);
            }
        }
        types
    }

    /// Notes the tensors that an op uses, or fixes their types where it is unknown what the op takes.
    fn limit(&mut self, op: OpId) {
        let step = self.step;
        let row = &step.ops[op];
        let Some(call) = row.call.as_deref() else { return };
        let known = step.around(op).find(|&around| OpTypes::from_name(&step.ops[around].name).is_some());
        for tensor in all(call).filter(|&tensor| cast::dtype(step, tensor).is_some()) {
            match known {
                Some(known) => {
                    let users = self.users.entry(tensor).or_default();
                    if !users.contains(&known) {
                        users.push(known);
                    }
                }
                None if row.name.starts_with("aten::empty") || is_passed_on(step, op, tensor) => {}
                None => {
                    self.fixed.insert(tensor);
                }
            }
        }
    }

    /// The type of a tensor of the device in 32 or 16 bits.
    pub fn dtype(&self, tensor: TensorId) -> Option<Dtype> {
        self.changed.get(&tensor).copied().or_else(|| cast::dtype(self.step, tensor))
    }

    /// Gives both sides of a cast one type, where all ops that use them take it.
    pub fn fuse(&mut self, cast: &Cast) {
        let (Some(from), Some(to)) = (self.dtype(cast.from), self.dtype(cast.to)) else { return };
        // The narrow type is stored where both are possible.
        let done = from == to
            || match to {
                Dtype::Bf16 => self.change(cast.from, to),
                _ => self.change(cast.to, from) || self.change(cast.from, to),
            };
        if done {
            self.shared.join(cast.from, cast.to);
        }
    }

    /// Stores the inputs of a concatenation in its type, where that is narrow.
    pub fn narrow_parts(&mut self) {
        let step = self.step;
        for op in step.running().into_iter().filter(|&op| step.ops[op].name == "aten::cat") {
            let Some(call) = step.ops[op].call.as_deref() else { continue };
            if call.gives().next().and_then(|whole| self.dtype(whole)) == Some(Dtype::Bf16) {
                for part in call.takes() {
                    self.change(part, Dtype::Bf16);
                }
            }
        }
    }

    /// Changes the type of a tensor, with all tensors that must have its type; nothing where one cannot change. Returns whether it has changed.
    fn change(&mut self, tensor: TensorId, to: Dtype) -> bool {
        let before = self.changed.clone();
        let mut open = vec![tensor];
        while let Some(tensor) = open.pop() {
            if self.dtype(tensor).is_none_or(|is| is == to) {
                continue;
            }
            let group = self.shared.tensors(self.shared.number(tensor)).to_vec();
            for &one in &group {
                if cast::dtype(self.step, one).is_some() {
                    self.changed.insert(one, to);
                }
            }
            if !group.iter().all(|&one| self.fits(one, to, &mut open)) {
                self.changed = before;
                return false;
            }
        }
        true
    }

    /// Whether all ops on a tensor take its new type. Tensors that must become narrow with it are added to `open`.
    fn fits(&self, tensor: TensorId, to: Dtype, open: &mut Vec<TensorId>) -> bool {
        if self.fixed.contains(&tensor) {
            return false;
        }
        self.users.get(&tensor).into_iter().flatten().all(|&op| {
            let row = &self.step.ops[op];
            let types = OpTypes::from_name(&row.name);
            let Some((types, call)) = types.zip(row.call.as_deref()) else { return false };
            let fits = types.fit(call, |tensor| self.dtype(tensor));
            if !fits && to == Dtype::Bf16 && matches!(types, OpTypes::One | OpTypes::View) {
                open.extend(all(call));
                return types.changes(call, tensor);
            }
            fits && types.changes(call, tensor)
        })
    }

    /// Changes the types in a patch.
    pub fn reshape(&self, patch: &mut Patch) {
        let mut changed: Vec<TensorId> = self.changed.keys().copied().collect();
        changed.sort();
        for tensor in changed {
            let value = &self.step.tensors[tensor].value;
            if self.changed[&tensor] != value.dtype {
                patch.reshape.push((tensor, in_type(value, self.changed[&tensor])));
            }
        }
    }
}
