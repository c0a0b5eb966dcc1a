//! Sparse gradients: they hold the rows of all batches, and so do the updates of their tables.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use steptime_aten::{Arg, Tensor};
use steptime_step::{Call, OpId, Patch, StepIr, TensorId};

use crate::updates;

/// The op that returns the indices of a sparse tensor, `[1, rows]`.
const INDICES: &str = "aten::_indices";
/// Ops with a number of rows as an argument.
const CUTS: [&str; 3] = ["aten::narrow", "aten::slice", "aten::arange"];

/// A sparse gradient, as stored for the optimizer by a function.
pub(super) struct Rows {
    /// Tensors of the stored and of the incoming gradient.
    own: FxHashSet<TensorId>,
    /// Rows of the table.
    all: u64,
    /// Rows in the gradient of one batch.
    given: u64,
}

impl Rows {
    /// The gradient stored by a function; `None` where it is dense, or its number of rows is unknown.
    pub fn find(step: &StepIr, function: OpId) -> Option<Rows> {
        let calls =
            || step.subtree(function).into_iter().filter_map(|op| Some((op, step.ops[op].call.as_deref()?)));
        let tensors = calls().flat_map(|(_, call)| call.takes().chain(call.gives()).collect::<Vec<_>>());
        let own: FxHashSet<TensorId> =
            tensors.filter(|&tensor| step.tensors[tensor].value.is_sparse()).collect();
        let all = own.iter().next().map(|&tensor| step.tensors[tensor].value.size(0))?;
        let given = calls().find(|(op, _)| step.ops[*op].name == INDICES)?.1.gives().next()?;
        let given = step.tensors[given].value.size(1);
        Some(Rows { own, all: u64::try_from(all).ok()?, given: u64::try_from(given).ok()? })
    }

    /// Number of rows of `batches` batches with `rows` rows each. Of distinct rows, it is the expected number of distinct rows if all batches draw
    /// from the same distribution.
    fn after_batches(&self, rows: u64, distinct: bool, batches: u32) -> u64 {
        let together = rows.saturating_mul(u64::from(batches));
        if !distinct || self.all == 0 {
            return together;
        }
        let missed = 1.0 - rows.min(self.all) as f64 / self.all as f64;
        let seen = self.all as f64 * (1.0 - missed.powf(f64::from(batches)));
        (seen.round() as u64).clamp(rows, together.max(rows))
    }
}

/// The patch that gives the updates of tables the rows of `batches` batches; `None` where all gradients are dense.
pub(super) fn scale_updates(
    step: &StepIr,
    rows: Vec<Rows>,
    batches: u32,
    rule: &'static str,
) -> Option<Patch> {
    let updates = updates::find(step, rows.iter().map(|rows| rows.own.clone()).collect());
    let within: Vec<FxHashSet<OpId>> =
        updates.alone.iter().map(|ops| ops.iter().flat_map(|&op| step.subtree(op)).collect()).collect();
    let every: FxHashSet<OpId> = within.iter().flatten().copied().collect();
    let elsewhere: FxHashSet<TensorId> = step
        .running()
        .into_iter()
        .filter(|op| !every.contains(op))
        .filter_map(|op| step.ops[op].call.as_deref())
        .flat_map(|call| call.takes().chain(call.gives()).collect::<Vec<_>>())
        .collect();
    let mut patch = Patch::new(rule);
    for (rows, ops) in rows.iter().zip(&within) {
        let sizes = sizes(step, rows, ops, batches);
        let mut ops: Vec<OpId> = ops.iter().copied().collect();
        ops.sort_unstable();
        let mut seen: FxHashSet<TensorId> = elsewhere.clone();
        for op in ops {
            let Some(call) = step.ops[op].call.as_deref() else { continue };
            for tensor in call.takes().chain(call.gives()).filter(|&tensor| seen.insert(tensor)) {
                patch
                    .reshape
                    .extend(resized(&step.tensors[tensor].value, &sizes).map(|value| (tensor, value)));
            }
            let name = &*step.ops[op].name;
            let now = Call {
                inputs: call.inputs.iter().map(|arg| counted(name, arg, &sizes)).collect(),
                ..call.clone()
            };
            if now != *call {
                patch.change.push((op, now));
            }
        }
    }
    patch.reshape.sort_by_key(|(tensor, _)| *tensor);
    patch.reshape.dedup_by_key(|(tensor, _)| *tensor);
    patch.why =
        format!("sparse gradients, and the updates of their tables, have the rows of {batches} batches");
    (!patch.is_empty()).then_some(patch)
}

/// New values of the sizes in a table's update: the rows of its gradient, and the distinct ones among them.
fn sizes(step: &StepIr, rows: &Rows, ops: &FxHashSet<OpId>, batches: u32) -> FxHashMap<i64, i64> {
    let mut sizes = FxHashMap::default();
    for &op in ops.iter().filter(|&&op| step.ops[op].name == INDICES) {
        let Some(given) = step.ops[op].call.as_deref().and_then(|call| call.gives().next()) else { continue };
        let size = step.tensors[given].value.size(1);
        let count = u64::try_from(size).unwrap_or(0);
        let now = rows.after_batches(count, count < rows.given, batches);
        sizes.insert(size, i64::try_from(now).unwrap_or(i64::MAX));
    }
    let given = i64::try_from(rows.given).unwrap_or(i64::MAX);
    let together = rows.after_batches(rows.given, false, batches);
    sizes.insert(given, i64::try_from(together).unwrap_or(i64::MAX));
    sizes
}

/// Indices `[rows]` or `[1, rows]`, or values `[rows, columns]`, with the new number of rows. Sparse tensors keep the table's shape.
fn resized(value: &Tensor, sizes: &FxHashMap<i64, i64>) -> Option<Tensor> {
    let at = match value.shape[..] {
        _ if value.is_sparse() => None,
        [1, _] => Some(1),
        [_] | [_, _] => Some(0),
        _ => None,
    }?;
    let now = *sizes.get(&value.shape[at])?;
    let mut shape = value.shape.clone();
    let mut strides = value.strides.clone();
    // Strides of dimensions before the rows grow with them.
    for (dim, stride) in strides.iter_mut().enumerate() {
        if dim < at && *stride == value.shape[at] {
            *stride = now;
        }
    }
    shape[at] = now;
    Some(Tensor { shape, strides, ..value.clone() })
}

fn counted(name: &str, arg: &Arg<TensorId>, sizes: &FxHashMap<i64, i64>) -> Arg<TensorId> {
    let now = |size: &i64| sizes.get(size).copied().unwrap_or(*size);
    match arg {
        Arg::Int(length) if CUTS.contains(&name) => Arg::Int(now(length)),
        Arg::Ints(list) => Arg::Ints(list.iter().map(now).collect::<SmallVec<_>>()),
        other => other.clone(),
    }
}
