//! The tables and layers of a step, in the order of their first use.

use rustc_hash::FxHashSet;
use steptime_graph::HostThreadId;
use steptime_graph::execution::StorageId;
use steptime_step::{OpId, StepIr, TensorId};

use super::path::{Part, Size, SizePath};
use crate::error::Error;

/// Ops that look up a table, and ops that multiply by a weight.
const TABLES: [&str; 2] = ["aten::embedding_bag", "aten::embedding"];
const LAYERS: [&str; 1] = ["aten::linear"];

/// A size to change: its dimensions of tensors, and its value.
pub(super) struct Target {
    pub name: String,
    pub dims: Vec<(TensorId, usize)>,
    pub size: u64,
}

/// The sizes that a path selects.
pub(super) fn find(step: &StepIr, path: &SizePath) -> Result<Vec<Target>, Error> {
    let (names, arg, what): (&[&str], usize, &str) = match path.part {
        Part::Table => (&TABLES, 0, "tables"),
        Part::Layer => (&LAYERS, 1, "layers"),
    };
    let all = parts(step, names, arg);
    let chosen: Vec<(usize, OpId)> = match path.at {
        None => all.iter().copied().enumerate().collect(),
        Some(at) => all.get(at).map(|&op| (at, op)).into_iter().collect(),
    };
    if chosen.is_empty() {
        return Err(Error::NoSuchPart {
            path: path.to_string(),
            what: what.to_owned(),
            count: all.len(),
            ops: names.join(" or "),
        });
    }
    chosen.into_iter().map(|(at, op)| target(step, path, format!("{what}[{at}]"), op, arg)).collect()
}

/// The tables and layers of a step by their paths, as `tables[3]` or `layers[0]`, each with the op that first uses it.
#[must_use]
pub fn sized(step: &StepIr) -> Vec<(OpId, String)> {
    let tables =
        parts(step, &TABLES, 0).into_iter().enumerate().map(|(at, op)| (op, format!("tables[{at}]")));
    let layers =
        parts(step, &LAYERS, 1).into_iter().enumerate().map(|(at, op)| (op, format!("layers[{at}]")));
    tables.chain(layers).collect()
}

/// The outermost ops of the forward pass that first use each weight.
fn parts(step: &StepIr, names: &[&str], arg: usize) -> Vec<OpId> {
    let mut seen: FxHashSet<(Option<StorageId>, TensorId)> = FxHashSet::default();
    let is_first = |op: &OpId| {
        let weight =
            step.ops[*op].call.as_deref().and_then(|call| call.inputs.get(arg)?.tensors().first().copied());
        weight.is_some_and(|weight| {
            let storage = step.tensors[weight].storage;
            seen.insert((storage, if storage.is_some() { TensorId::from(0_usize) } else { weight }))
        })
    };
    let forward = |op: &OpId| step.ops[*op].thread == HostThreadId::MAIN && step.outermost(*op) == *op;
    let named = |op: &OpId| names.contains(&&*step.ops[*op].name);
    step.running().into_iter().filter(named).filter(forward).filter(is_first).collect()
}

fn target(step: &StepIr, path: &SizePath, name: String, op: OpId, arg: usize) -> Result<Target, Error> {
    let none = || Error::NoSuchPart {
        path: path.to_string(),
        what: name.clone(),
        count: 0,
        ops: step.ops[op].name.clone(),
    };
    let input = |at: usize| step.ops[op].call.as_deref()?.inputs.get(at)?.tensors().first().copied();
    let shape = |tensor: TensorId| &step.tensors[tensor].value.shape;
    let (tensor, at) = match path.size {
        Size::Rows | Size::Width => (input(arg), 0),
        Size::Columns => (input(arg), 1),
        Size::Lookups => {
            let indices = input(1).ok_or_else(none)?;
            (Some(indices), shape(indices).len().saturating_sub(1))
        }
    };
    let tensor = tensor.ok_or_else(none)?;
    let size = u64::try_from(*shape(tensor).get(at).ok_or_else(none)?).unwrap_or(0);
    let bags = match (path.size, input(2)) {
        // The indices of all bags are concatenated.
        (Size::Lookups, Some(offsets)) if shape(tensor).len() == 1 => bags(step, op, offsets),
        (Size::Lookups, None) if shape(tensor).len() == 1 => size,
        _ => 1,
    };
    if size == 0 || bags == 0 || !size.is_multiple_of(bags) {
        return Err(Error::UnevenLookups { name, lookups: size, bags });
    }
    Ok(Target { name, dims: vec![(tensor, at)], size: size / bags })
}

/// Number of bags of an op.
fn bags(step: &StepIr, op: OpId, offsets: TensorId) -> u64 {
    let result = step.ops[op].call.as_deref().and_then(|call| call.gives().next());
    let of = result.and_then(|result| step.tensors[result].value.shape.first().copied());
    of.or_else(|| step.tensors[offsets].value.shape.first().copied())
        .and_then(|size| u64::try_from(size).ok())
        .unwrap_or(0)
}
