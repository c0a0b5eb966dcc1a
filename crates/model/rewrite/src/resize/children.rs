//! Ops that call others than before where their arguments have other sizes: a sort only where there is much to sort.

use rustc_hash::FxHashMap;
use steptime_aten::{Arg, OpCall, OpSet};
use steptime_step::{Call, OpId, Patch, Place, Step, TensorId};

/// The patch that removes and puts in what ops of a step call otherwise than before once it is resized by a patch that
/// changes shapes and arguments alone. Empty where none does.
pub(super) fn patch(step: &Step, resize: &Patch, ops: &OpSet, rule: &'static str) -> Patch {
    let resized = Resized::by(resize);
    let mut patch = Patch::new(rule);
    for op in step.running() {
        let row = &step.ops[op];
        if row.origin.recorded().is_none() || ops.find(&row.name).is_none_or(|known| known.expand.is_none()) {
            continue;
        }
        let (Some(was), Some(now)) = (step.call(op), resized.call(step, op)) else { continue };
        let (was, now) = (ops.expand(was), ops.expand(&now));
        let names = |calls: &[OpCall]| calls.iter().map(|call| call.name.clone()).collect::<Vec<_>>();
        let (mut gone, mut added) = (names(&was), now);
        added.retain(|call| match gone.iter().position(|name| *name == call.name) {
            Some(same) => {
                gone.swap_remove(same);
                false
            }
            None => true,
        });
        for name in gone {
            let child = row
                .children
                .iter()
                .find(|&&child| step.ops[child].name == name && !patch.remove.contains(&child));
            patch.remove.extend(child);
        }
        for call in added {
            let new = patch.described(step, &call);
            patch.insert.push((Place::LastIn(op), new));
        }
    }
    patch
}

/// What a patch gives other shapes or arguments.
struct Resized<'p> {
    calls: FxHashMap<OpId, &'p Call>,
    tensors: FxHashMap<TensorId, &'p steptime_aten::Tensor>,
}

impl<'p> Resized<'p> {
    fn by(patch: &'p Patch) -> Resized<'p> {
        Resized {
            calls: patch.change.iter().map(|(op, call)| (*op, call)).collect(),
            tensors: patch.reshape.iter().map(|(tensor, value)| (*tensor, value)).collect(),
        }
    }

    /// What an op is called with then; `None` where that is what it was called with.
    fn call(&self, step: &Step, op: OpId) -> Option<OpCall> {
        let was = step.ops[op].call.as_deref()?;
        let now = self.calls.get(&op).copied();
        let call = now.unwrap_or(was);
        if now.is_none() && !call.takes().chain(call.gives()).any(|tensor| self.tensors.contains_key(&tensor))
        {
            return None;
        }
        let value = |id: &TensorId| self.tensors.get(id).copied().unwrap_or(&step.tensors[*id].value).clone();
        let all = |args: &[Arg<TensorId>]| args.iter().map(|arg| arg.map(value)).collect();
        Some(OpCall {
            name: step.ops[op].name.clone(),
            inputs: all(&call.inputs),
            outputs: all(&call.outputs),
            settings: call.settings,
        })
    }
}
