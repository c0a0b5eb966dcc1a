//! Flat inputs of a concatenation, such as the gradients that a rank sends to others.

use rustc_hash::FxHashMap;
use steptime_aten::{Arg, Tensor};
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId, Uses};

use super::IN_PLACE;

/// The op that copies a tensor.
const CLONE: &str = "aten::clone";

/// Stores the inputs of a concatenation within its result, where copies write all of them; returns whether it does.
pub(super) fn place(
    step: &StepIr,
    uses: &Uses,
    op: OpId,
    patch: &mut Patch,
    replaced: &mut FxHashMap<TensorId, TensorId>,
) -> bool {
    let Some(call) = step.ops[op].call.as_deref() else { return false };
    let parts = call.inputs.first().map_or(&[][..], Arg::tensors).iter().copied();
    let parts: Vec<TensorId> = parts.filter(|&part| step.tensors[part].value.numel() > 0).collect();
    let Some(whole) = call.gives().next() else { return false };
    let all: Option<Vec<Vec<TensorId>>> = parts.iter().map(|&part| copied(step, uses, op, part)).collect();
    let Some(all) = all.filter(|all| !all.is_empty()) else { return false };
    let mut seen: Vec<TensorId> = Vec::new();
    for &tensor in all.iter().flatten() {
        if seen.contains(&tensor) || replaced.contains_key(&tensor) {
            return false;
        }
        seen.push(tensor);
    }
    let whole_row = &step.tensors[whole];
    let mut start = whole_row.value.offset;
    for (&part, tensors) in parts.iter().zip(&all) {
        for &tensor in tensors {
            let value = &step.tensors[tensor].value;
            let within =
                Tensor { offset: start + value.offset, place: whole_row.value.place, ..value.clone() };
            replaced.insert(tensor, patch.tensor_in(step, within, whole_row.storage));
        }
        start += step.tensors[part].value.numel();
    }
    let within = parts.iter().map(|part| replaced[part]).collect();
    let inputs = vec![Arg::Tensors(within), Arg::Tensors(Vec::new()), Arg::Int(0)];
    let call = Call { inputs, outputs: vec![Arg::Tensor(whole)], ..Call::default() };
    patch.insert.push((Place::Before(op), NewOp::new(IN_PLACE, call)));
    patch.remove.push(op);
    true
}

/// The tensors in the storage of a flat one that is the whole result of a copy, which the concatenation alone reads; `None` where it is not.
fn copied(step: &StepIr, uses: &Uses, concatenation: OpId, part: TensorId) -> Option<Vec<TensorId>> {
    let own = &step.tensors[part];
    let storage = own.storage.filter(|_| own.value.offset == 0 && own.value.strides[..] == [1])?;
    // Rules leave tensors that no op uses.
    let is_used = |tensor: &TensorId| uses.producer(*tensor).is_some() || !uses.consumers(*tensor).is_empty();
    let alike = step.tensors.keys().filter(|&tensor| step.tensors[tensor].storage == Some(storage));
    let all: Vec<TensorId> = alike.filter(is_used).collect();
    let mut copies = 0;
    let fits = all.iter().all(|&tensor| {
        let Some(writer) = uses.producer(tensor) else { return false };
        let clone = step.around(writer).find(|&op| step.ops[op].name == CLONE);
        copies += usize::from(clone.is_some());
        let reads = |&op: &OpId| {
            let inside = |wanted: OpId| step.around(op).any(|around| around == wanted);
            inside(concatenation) || clone.is_some_and(inside) || is_view(step, op)
        };
        (clone.is_some() || is_view(step, writer)) && uses.consumers(tensor).iter().all(reads)
    });
    (fits && copies > 0).then_some(all)
}

/// Whether an op returns a view of its first tensor, or calls ops that do.
fn is_view(step: &StepIr, op: OpId) -> bool {
    let storage = |tensor: TensorId| step.tensors[tensor].storage;
    let Some(call) = step.ops[op].call.as_deref() else { return true };
    let Some(from) = call.takes().next() else { return false };
    let mut given = call.gives().peekable();
    let is_in_place = step.ops[op].name.ends_with('_');
    !is_in_place && given.peek().is_some() && given.all(|to| to == from || storage(to) == storage(from))
}
