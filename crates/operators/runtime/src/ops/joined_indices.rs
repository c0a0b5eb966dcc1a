//! Indices of several tables that a concatenation joins for their lookups: they are fed as one input, in the order of the tables.

use steptime_aten::{Arg, Dtype};
use steptime_eager::Role;
use steptime_step::{OpId, TensorId, Uses};

use crate::binder::{Binder, Refusal};

/// Prefix of the lookups and of the updates of tables.
const CALL: &str = "steptime::embedding_bag";

/// Whether a concatenation joins the indices of tables that all of its readers look up, in the same order.
pub(super) fn are_joined(b: &Binder<'_, '_>) -> Result<bool, Refusal> {
    let (parts, whole) = (b.ids(0)?, b.result(0)?);
    let value = b.value(whole);
    if value.dtype != Dtype::I64 || value.shape.len() != 1 || b.places.is_placed(whole) {
        return Ok(false);
    }
    let Some(names) = parts.iter().map(|&part| input(b, part)).collect::<Option<Vec<_>>>() else {
        return Ok(false);
    };
    let step = b.step();
    let takes = |&op: &OpId| {
        let row = &step.ops[op];
        let inside = step.is_within(op, b.op) || !(b.is_op)(&row.name);
        inside
            || row.name.starts_with(CALL) && tables(b, op).is_some_and(|tables| looks_up(b, tables, &names))
    };
    let uses = Uses::find(step);
    Ok(uses.consumers(whole).iter().all(takes) && !uses.consumers(whole).is_empty())
}

/// Name of the input that a tensor is.
fn input<'b>(b: &'b Binder<'_, '_>, tensor: TensorId) -> Option<&'b str> {
    let memory = b.places.memory_of(tensor)?;
    match b.described().named(b.places.memories[memory.0].tensor?) {
        Some((name, Role::Input)) => Some(name),
        _ => None,
    }
}

/// The tables of a lookup or of an update.
fn tables<'b>(b: &'b Binder<'_, '_>, op: OpId) -> Option<&'b [TensorId]> {
    let inputs = &b.step().ops[op].call.as_deref()?.inputs;
    inputs.iter().find_map(|arg| match arg {
        Arg::Tensors(tables) => Some(&tables[..]),
        _ => None,
    })
}

/// Whether the tables are looked up by the indices of these names, in this order.
fn looks_up(b: &Binder<'_, '_>, tables: &[TensorId], names: &[&str]) -> bool {
    let indices = tables.iter().map(|&table| b.described().lookup(table).map(|lookup| &*lookup.indices));
    tables.len() == names.len() && indices.zip(names).all(|(one, name)| one == Some(*name))
}
