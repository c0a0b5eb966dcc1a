//! The embedding bags of a step.

use steptime_aten::{Arg, Dtype};
use steptime_step::{OpId, StepIr, TensorId};

/// An op that looks up rows of one table and pools them.
#[derive(Debug, Clone)]
pub(super) struct Bag {
    pub op: OpId,
    pub table: TensorId,
    /// Indices, offsets of bags, and weights of indices where there are any.
    pub inputs: Vec<TensorId>,
    pub result: TensorId,
    /// Bag of each index, an input of the backward op.
    pub bag_of: TensorId,
    pub kind: Kind,
}

/// Properties in which bags must agree to be merged.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kind {
    pub width: i64,
    pub bags: i64,
    pub dtype: Dtype,
    pub mode: Arg<TensorId>,
    pub sparse: Arg<TensorId>,
    pub weighted: bool,
    /// Whether the offsets include the end of the last bag.
    pub has_end: bool,
}

/// The bags of a step, in the order of lookup.
pub(super) fn find(step: &StepIr) -> Vec<Bag> {
    step.running().into_iter().filter_map(|op| bag(step, op)).collect()
}

/// Bags that can be merged, grouped by kind.
pub(super) fn groups(bags: Vec<Bag>) -> Vec<Vec<Bag>> {
    let mut groups: Vec<Vec<Bag>> = Vec::new();
    for bag in bags {
        match groups.iter_mut().find(|group| group.iter().all(|other| other.kind == bag.kind)) {
            Some(group) => group.push(bag),
            None => groups.push(vec![bag]),
        }
    }
    groups
}

fn bag(step: &StepIr, op: OpId) -> Option<Bag> {
    const NAME: &str = "aten::embedding_bag";
    let row = &step.ops[op];
    let inside = row.parent.is_some_and(|parent| step.ops[parent].name == NAME);
    let call = row.call.as_deref().filter(|_| row.name == NAME && !inside)?;
    let input = |at: usize| call.inputs.get(at).and_then(one);
    let output = |at: usize| call.outputs.get(at).and_then(one);
    let flag = |at: usize| call.inputs.get(at).cloned().unwrap_or_default();
    let (table, result) = (input(0)?, output(0)?);
    let value = &step.tensors[result].value;
    let &[bags, width] = &value.shape[..] else { return None };
    Some(Bag {
        op,
        table,
        inputs: [Some(input(1)?), Some(input(2)?), input(6)].into_iter().flatten().collect(),
        result,
        bag_of: output(1)?,
        kind: Kind {
            width,
            bags,
            dtype: value.dtype,
            mode: flag(4),
            sparse: flag(5),
            weighted: input(6).is_some(),
            has_end: flag(7) == Arg::Bool(true),
        },
    })
}

/// The single tensor of an argument.
pub(super) fn one(arg: &Arg<TensorId>) -> Option<TensorId> {
    match arg {
        Arg::Tensor(tensor) => Some(*tensor),
        _ => None,
    }
}
