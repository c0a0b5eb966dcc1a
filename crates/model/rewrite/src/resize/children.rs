//! Ops whose inner calls depend on the sizes of their arguments: a sort only runs where there is much to sort.

use rustc_hash::FxHashMap;
use steptime_aten::{Arg, OpCall, OpSet};
use steptime_step::{Call, OpId, Patch, Place, StepIr, TensorId, Uses};

/// The patch that removes and inserts inner calls of ops whose calls change after a resize, which changes only shapes and arguments. Empty where no
/// calls change.
pub(super) fn patch(step: &StepIr, resize: &Patch, ops: &OpSet, rule: &'static str) -> Patch {
    let resized = ResizedCalls::by(resize);
    let mut patch = Patch::new(rule);
    let mut taken: Option<Uses> = None;
    let mut changed: FxHashMap<OpId, Call> = FxHashMap::default();
    for op in step.running() {
        let row = &step.ops[op];
        if row.origin.recorded().is_none() || ops.find(&row.name).is_none_or(|known| known.expand.is_none()) {
            continue;
        }
        let (Some(was), Some(now)) = (step.call(op), resized.call(step, op)) else { continue };
        let (was, now) = (ops.expand(was), ops.expand(&now));
        let (gone, added) = difference(&was, now);
        let removed: Vec<OpId> = gone.into_iter().filter_map(|at| recorded(step, op, &was, at)).collect();
        if removed.is_empty() && added.is_empty() {
            continue;
        }
        let uses = taken.get_or_insert_with(|| Uses::find(step));
        let Some(instead) = instead(step, uses, op, &removed) else { continue };
        for (consumer, from, to) in instead {
            let call = changed.entry(consumer).or_insert_with(|| {
                let call = resized.calls.get(&consumer).copied().or(step.ops[consumer].call.as_deref());
                call.cloned().unwrap_or_default()
            });
            let inputs = call.inputs.iter_mut().flat_map(Arg::tensors_mut);
            inputs.filter(|tensor| **tensor == from).for_each(|tensor| *tensor = to);
        }
        patch.remove.extend(removed);
        for call in added {
            let new = patch.described(step, &call);
            patch.insert.push((Place::LastIn(op), new));
        }
    }
    patch.change = changed.into_iter().collect();
    patch.change.sort_unstable_by_key(|(op, _)| *op);
    patch
}

/// The inner op that ran a call of an op: among ops of its name, the one at the same position.
fn recorded(step: &StepIr, op: OpId, calls: &[OpCall], at: usize) -> Option<OpId> {
    let name = &calls[at].name;
    let place = calls[..at].iter().filter(|call| call.name == *name).count();
    let children = step.ops[op].children.iter().copied();
    children.filter(|&child| step.ops[child].name == *name).nth(place)
}

/// Positions of removed calls, and the new calls. Calls of one name are distinguished by the ranks of their tensors.
fn difference(was: &[OpCall], now: Vec<OpCall>) -> (Vec<usize>, Vec<OpCall>) {
    let ranks = |call: &OpCall| -> Vec<usize> {
        call.inputs.iter().flat_map(Arg::tensors).map(|tensor| tensor.shape.len()).collect()
    };
    let mut gone: Vec<usize> = (0..was.len()).collect();
    let mut added = now;
    added.retain(|call| {
        let alike = |&other: &usize| was[other].name == call.name && ranks(&was[other]) == ranks(call);
        let same = gone.iter().position(alike);
        same.map(|same| gone.remove(same)).is_none()
    });
    (gone, added)
}

/// Ops that take an output of removed ops, with that tensor and its replacement: the source of a copy. `None` where an op takes an output without a
/// replacement.
fn instead(step: &StepIr, uses: &Uses, op: OpId, gone: &[OpId]) -> Option<Vec<(OpId, TensorId, TensorId)>> {
    let around: Vec<TensorId> =
        step.around(op).filter_map(|op| step.ops[op].call.as_deref()).flat_map(Call::gives).collect();
    let is_gone = |op: OpId| step.around(op).any(|op| gone.contains(&op));
    let calls =
        gone.iter().flat_map(|&child| step.subtree(child)).filter_map(|op| step.ops[op].call.as_deref());
    let inside: Vec<TensorId> = calls
        .flat_map(|call| call.gives().filter(|given| !call.takes().any(|taken| taken == *given)))
        .collect();
    let mut all = Vec::new();
    for inner in gone.iter().flat_map(|&child| step.subtree(child)) {
        let Some(call) = step.ops[inner].call.as_deref() else { continue };
        for given in call.gives().filter(|given| !around.contains(given)) {
            let shape = &step.tensors[given].value.shape;
            let copied =
                call.takes().find(|&taken| taken != given && step.tensors[taken].value.shape == *shape);
            for &consumer in uses.consumers(given).iter().filter(|&&consumer| !is_gone(consumer)) {
                let copied = copied.filter(|copied| !inside.contains(copied))?;
                all.push((consumer, given, copied));
            }
        }
    }
    Some(all)
}

/// Calls and tensors that a patch changes.
struct ResizedCalls<'p> {
    calls: FxHashMap<OpId, &'p Call>,
    tensors: FxHashMap<TensorId, &'p steptime_aten::Tensor>,
}

impl<'p> ResizedCalls<'p> {
    fn by(patch: &'p Patch) -> ResizedCalls<'p> {
        ResizedCalls {
            calls: patch.change.iter().map(|(op, call)| (*op, call)).collect(),
            tensors: patch.reshape.iter().map(|(tensor, value)| (*tensor, value)).collect(),
        }
    }

    /// The resized call of an op; `None` where it does not change.
    fn call(&self, step: &StepIr, op: OpId) -> Option<OpCall> {
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
