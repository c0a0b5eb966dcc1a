//! Tensors that are stored as columns of another one, so that no op copies them there: inputs of concatenations, and copies of columns.
//!
//! A GPU's products and bags write rows at any distance, and its updates of tables read them so.

use rustc_hash::FxHashSet;
use steptime_step::{OpId, StepIr, TensorId, Uses};

use crate::places::Places;
use crate::table;

/// Ops whose results may have rows at any distance.
const WRITERS: [&str; 3] = ["aten::addmm", "aten::_addmm_activation", "steptime::embedding_bag"];

/// Stores the inputs of concatenations of columns within their results, and notes the copies that are not needed, before any op is compiled.
pub(crate) fn joined_rows(places: &mut Places<'_>, order: &[OpId]) {
    let step = &places.described.step;
    let uses = Uses::find(step);
    for &op in order {
        match &*step.ops[op].name {
            "aten::cat" => concatenation(places, &uses, op),
            "aten::clone" if is_read_by_updates(step, &uses, op) => {
                places.shared.insert(op);
            }
            _ => {}
        }
    }
}

/// Stores the inputs of a concatenation of columns within its result.
fn concatenation(places: &mut Places<'_>, uses: &Uses, op: OpId) {
    let step = &places.described.step;
    let Some(call) = step.ops[op].call.as_deref() else { return };
    let (Some(parts), Some(&whole)) =
        (call.inputs.first().map(|arg| arg.tensors()), call.gives().next().as_ref())
    else {
        return;
    };
    let of = |tensor: TensorId| &step.tensors[tensor].value;
    let strides = places.strides.get(&whole).map_or(&of(whole).strides[..], |own| &own[..]);
    let (&[_, _], &[pitch, 1]) = (&of(whole).shape[..], strides) else { return };
    let mut seen = FxHashSet::default();
    let mut start = 0;
    for &part in parts {
        let &[_, columns] = &of(part).shape[..] else { return };
        let fits =
            of(part).strides[..] == [columns, 1] && columns % 4 == 0 && start % 4 == 0 && pitch % 4 == 0;
        let is_own = places.described.named(part).is_none() && seen.insert(part);
        if fits && is_own && is_free(step, uses, op, part) && places.alias(part, whole, start) {
            places.strides.insert(part, vec![pitch, 1]);
        }
        start += columns;
    }
}

/// Whether a tensor is written by an op that takes any distance of rows, and read by the concatenation and slopes alone.
fn is_free(step: &StepIr, uses: &Uses, concatenation: OpId, part: TensorId) -> bool {
    let Some(writer) = uses.producer(part) else { return false };
    let Some(writer) = step.around(writer).find(|&op| WRITERS.contains(&&*step.ops[op].name)) else {
        return false;
    };
    let reads = |&op: &OpId| {
        let name = &*step.ops[op].name;
        let is_inside = step.around(op).any(|around| around == concatenation || around == writer);
        is_inside || name == "aten::threshold_backward" || table::find(name).is_none()
    };
    uses.consumers(part).iter().all(reads)
}

/// Whether a copy of columns is read by updates of tables alone, and no op changes its source.
fn is_read_by_updates(step: &StepIr, uses: &Uses, op: OpId) -> bool {
    let Some(call) = step.ops[op].call.as_deref() else { return false };
    let (Some(from), Some(to)) = (call.takes().next(), call.gives().next()) else { return false };
    let source = &step.tensors[from];
    let is_rows = source.value.shape.len() == 2 && source.value.strides.last() == Some(&1);
    let reads = |&reader: &OpId| {
        let name = &*step.ops[reader].name;
        let is_inside = step.around(reader).any(|around| around == op);
        is_inside || name.starts_with("steptime::embedding_bag_backward_") || table::find(name).is_none()
    };
    let updates = uses.consumers(to).iter().all(reads);
    let storage = source.storage;
    let changes = |op: OpId| {
        let own = &step.ops[op];
        let in_place = own.name.rsplit(':').next().is_some_and(|name| name.ends_with('_'));
        let takes = |tensor: TensorId| storage.is_some() && step.tensors[tensor].storage == storage;
        in_place && own.call.as_deref().is_some_and(|call| call.takes().any(takes))
    };
    is_rows && updates && !step.running().into_iter().any(changes)
}
