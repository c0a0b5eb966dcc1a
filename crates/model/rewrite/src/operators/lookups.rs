//! Lookups in embedding tables: single rows, or pooled rows.

use steptime_aten::{Arg, Device, Dtype};
use steptime_step::{Call, OpId, StepIr, TensorId, Uses};

use super::index_origin;
use crate::updates;

/// An op that looks up rows of one table.
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    pub op: OpId,
    pub table: TensorId,
    pub indices: TensorId,
    /// Offsets of the bags; `None` where each bag is one row.
    pub offsets: Option<TensorId>,
    pub mean: bool,
    pub result: TensorId,
    /// Number of bags, or of rows.
    pub bags: i64,
    pub width: i64,
    /// Input that identifies its backward op: the bag of each index.
    pub bag_of: Option<TensorId>,
}

/// The lookups in execution order, and the reasons why others stay as they are.
pub(crate) fn find(step: &StepIr, uses: &Uses) -> (Vec<Lookup>, Vec<String>) {
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for op in step.running() {
        match lookup(step, op).map(|lookup| lookup.and_then(|one| usable(step, uses, one))) {
            Some(Ok(lookup)) => found.push(lookup),
            Some(Err(why)) => left.push(why),
            None => {}
        }
    }
    (found, left)
}

/// All lookups that operators support, without the checks of types, layouts and consumers.
pub(crate) fn each(step: &StepIr) -> Vec<Lookup> {
    step.running().into_iter().filter_map(|op| lookup(step, op)?.ok()).collect()
}

/// The lookup that an op performs; an error where the operators do not support it.
fn lookup(step: &StepIr, op: OpId) -> Option<Result<Lookup, String>> {
    let row = &step.ops[op];
    let call = row.call.as_deref().filter(|_| step.outermost(op) == op && !row.captured)?;
    match &*row.name {
        "aten::embedding" => rows(step, op, call),
        "aten::embedding_bag" => bags(step, op, call),
        _ => None,
    }
}

/// `embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)`.
fn rows(step: &StepIr, op: OpId, call: &Call) -> Option<Result<Lookup, String>> {
    let [table, indices, result] =
        [tensor(&call.inputs, 0)?, tensor(&call.inputs, 1)?, tensor(&call.outputs, 0)?];
    let bags = step.tensors[indices].value.numel() as i64;
    let width = *step.tensors[table].value.shape.get(1)?;
    let lookup = Lookup { op, table, indices, offsets: None, mean: false, result, bags, width, bag_of: None };
    Some(if is_padded(call, 2) {
        Err(format!("{} has a padding row", described(step, table)))
    } else if is_on(call, 3) {
        Err(format!("{} scales its gradients by frequency", described(step, table)))
    } else {
        Ok(lookup)
    })
}

/// `embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
/// padding_idx)`.
fn bags(step: &StepIr, op: OpId, call: &Call) -> Option<Result<Lookup, String>> {
    let input = |at| tensor(&call.inputs, at);
    let (table, indices, result) = (input(0)?, input(1)?, tensor(&call.outputs, 0)?);
    let &[bags, width] = &step.tensors[result].value.shape[..] else { return None };
    let mode = if let Some(Arg::Int(mode)) = call.inputs.get(4) { *mode } else { 0 };
    let (offsets, bag_of) = (input(2), tensor(&call.outputs, 1));
    let lookup = Lookup { op, table, indices, offsets, mean: mode == 1, result, bags, width, bag_of };
    let about = |what: &str| Err(format!("{} {what}", described(step, table)));
    Some(match () {
        () if offsets.is_none() => about("has bags without offsets"),
        () if input(6).is_some() => about("has lookups with weights"),
        () if !(0..=1).contains(&mode) => about("has bags of mode max"),
        () if is_padded(call, 8) => about("has a padding row"),
        () if is_on(call, 3) => about("scales its gradients by frequency"),
        () => Ok(lookup),
    })
}

/// Checks that the operators support a lookup's table, indices and offsets.
fn usable(step: &StepIr, uses: &Uses, lookup: Lookup) -> Result<Lookup, String> {
    let about = |what: String| Err(format!("{} {what}", described(step, lookup.table)));
    let (table, indices) = (&step.tensors[lookup.table].value, &step.tensors[lookup.indices].value);
    if table.device != Device::Cuda || !table.is_contiguous() || table.dtype != Dtype::F32 {
        return about("is not a contiguous float32 matrix on the device".to_owned());
    }
    if !matches!(indices.dtype, Dtype::I32 | Dtype::I64) {
        return about("has indices that are neither int32 nor int64".to_owned());
    }
    let others = uses.consumers(lookup.table).iter();
    let mut others =
        others.filter(|&&op| !step.is_within(op, lookup.op) && updates::owner(step, op).is_none());
    if let Some(&other) = others.next() {
        return about(format!("is also used by {}", step.ops[step.outermost(other)].name));
    }
    match lookup.offsets {
        Some(offsets) if index_origin::source(step, uses, offsets).is_none() => {
            about("has offsets that the step computes".to_owned())
        }
        _ => Ok(lookup),
    }
}

/// A description of a table.
pub(crate) fn described(step: &StepIr, table: TensorId) -> String {
    let shape = &step.tensors[table].value.shape;
    let sizes: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("the table of {}", sizes.join(" x "))
}

fn is_padded(call: &Call, at: usize) -> bool {
    matches!(call.inputs.get(at), Some(Arg::Int(row)) if *row >= 0)
}

fn is_on(call: &Call, at: usize) -> bool {
    call.inputs.get(at) == Some(&Arg::Bool(true))
}

/// The tensor at an argument position.
pub(crate) fn tensor(args: &[Arg<TensorId>], at: usize) -> Option<TensorId> {
    match args.get(at)? {
        Arg::Tensor(tensor) => Some(*tensor),
        _ => None,
    }
}
