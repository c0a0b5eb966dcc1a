//! Inputs of a step that hold lookups.

use rustc_hash::FxHashSet;
use steptime_step::{OpId, StepIr, TensorId, Uses};

use super::tables::Table;
use crate::error::Error;
use crate::operators::index_origin::maker;

/// Tensors from before the step, or created without inputs, that reach lookups whose vectors are sent to other ranks.
///
/// # Errors
/// Where one of them is also taken by other ops.
pub(super) fn find(step: &StepIr) -> Result<FxHashSet<TensorId>, Error> {
    let uses = Uses::find(step);
    let tables: Vec<Table> = super::tables::find(step);
    let sent = |table: &&Table| uses.consumers(table.lookup.result).iter().any(|&op| to_others(step, op));
    let mut found = FxHashSet::default();
    let mut on_the_way: FxHashSet<OpId> = FxHashSet::default();
    let mut open: Vec<TensorId> = tables.iter().filter(sent).flat_map(Table::inputs).collect();
    let own: FxHashSet<OpId> = tables.iter().filter(sent).flat_map(Table::roots).collect();
    let mut seen: FxHashSet<TensorId> = open.iter().copied().collect();
    while let Some(tensor) = open.pop() {
        let maker = maker(step, &uses, tensor);
        let takes = maker.and_then(|maker| step.ops[maker].call.as_deref());
        let takes: Vec<TensorId> = takes.into_iter().flat_map(steptime_step::Call::takes).collect();
        on_the_way.extend(maker);
        if takes.is_empty() {
            found.insert(tensor);
        }
        open.extend(takes.into_iter().filter(|&taken| seen.insert(taken)));
    }
    for &tensor in &found {
        let shared = uses.consumers(tensor).iter().map(|&op| step.outermost(op));
        let mut shared = shared.filter(|op| !on_the_way.contains(op) && !own.contains(op));
        if let Some(op) = shared.find(|&op| sized(step, tensor) && !step.event(op).is_engine()) {
            return Err(Error::SharedInput {
                op: step.ops[op].name.clone(),
                shape: step.tensors[tensor].value.shape.to_vec(),
            });
        }
    }
    Ok(found)
}

fn sized(step: &StepIr, tensor: TensorId) -> bool {
    !step.tensors[tensor].value.shape.is_empty()
}

/// Whether an op sends its inputs to other ranks.
fn to_others(step: &StepIr, op: OpId) -> bool {
    step.ops[op].origin == steptime_step::Origin::Inserted("shard-tables")
}
