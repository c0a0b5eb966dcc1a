//! Shapes with another batch.

use steptime_aten::{Arg, OpSet, Tensor};
use steptime_step::{OpId, Patch, Step, TensorId};

use super::labels::Labels;
use super::pieces::Pieces;
use crate::error::Error;

/// The patch that gives every tensor its new shape, and every list of sizes its new numbers.
pub(super) fn patch(
    step: &Step,
    labels: &Labels,
    ops: &OpSet,
    rule: &'static str,
    [from, to]: [u64; 2],
) -> Result<Patch, Error> {
    let mut patch = Patch::new(rule);
    for (id, tensor) in step.tensors.iter_enumerated() {
        if labels.of(id).iter().any(|&times| times > 0) {
            let value = resized(&tensor.value, labels.of(id), [from, to]);
            let value = value.ok_or_else(|| Error::TooLarge { op: taker(step, id) })?;
            patch.reshape.push((id, value));
        }
    }
    let new = |id: TensorId| patch.reshape.binary_search_by_key(&id, |(id, _)| *id).ok();
    let pieces = Pieces::of(step);
    let more = |tensor: TensorId, dim: i64| {
        let old = step.tensors[tensor].value.size(dim);
        new(tensor).map_or(0, |at| patch.reshape[at].1.size(dim) - old)
    };
    let mut changes = Vec::new();
    for op in step.running() {
        let Some(call) = step.ops[op].call.as_deref() else { continue };
        if !call.inputs.iter().any(|arg| matches!(arg, Arg::Int(_) | Arg::Ints(_))) {
            continue;
        }
        let mut changed = call.clone();
        for arg in &mut changed.inputs {
            let Arg::Ints(sizes) = arg else { continue };
            let same = |id: &TensorId| step.tensors[*id].value.shape[..] == sizes[..];
            if let Some(at) = call.gives().find(same).and_then(new) {
                *sizes = patch.reshape[at].1.shape.iter().copied().collect();
            }
        }
        pieces.adjust(step, op, &mut changed, &more);
        if let Some(samples) = samples(step, op, ops)
            && let Some(arg @ Arg::Int(_)) = changed.inputs.get_mut(samples)
            && let Some(at) = call.takes().next().and_then(new)
        {
            *arg = Arg::Int(patch.reshape[at].1.size(0));
        }
        if let Some(rows) = rows(step, op, ops)
            && let Some(arg @ Arg::Int(_)) = changed.inputs.get_mut(rows)
            && let Some(at) = call.gives().next().and_then(new)
        {
            *arg = Arg::Int(patch.reshape[at].1.size(0));
        }
        if changed != *call {
            changes.push((op, changed));
        }
    }
    patch.change = changes;
    Ok(patch)
}

/// Where an op is told how many samples there are, as group norm is.
fn samples(step: &Step, op: OpId, ops: &OpSet) -> Option<usize> {
    let call = step.ops[op].name.contains("group_norm").then(|| step.call(op)).flatten()?;
    let bound = ops.bind(call)?;
    bound.has("N").then(|| bound.position("N")).flatten()
}

/// Where a gradient of a table is told how many rows that has.
fn rows(step: &Step, op: OpId, ops: &OpSet) -> Option<usize> {
    let call = step.ops[op].name.contains("embedding").then(|| step.call(op)).flatten()?;
    let bound = ops.bind(call)?;
    bound.has("num_weights").then(|| bound.position("num_weights")).flatten()
}

/// The name of an op that takes or makes a tensor.
fn taker(step: &Step, tensor: TensorId) -> String {
    let names = |op| {
        let row: &steptime_step::Op = &step.ops[op];
        row.call.as_deref().is_some_and(|call| call.takes().chain(call.gives()).any(|other| other == tensor))
    };
    step.running().into_iter().find(|&op| names(op)).map_or_else(String::new, |op| step.ops[op].name.clone())
}

/// A tensor whose labelled dimensions have grown; `None` where one is too large to be counted.
fn resized(tensor: &Tensor, times: &[i64], [from, to]: [u64; 2]) -> Option<Tensor> {
    let more = i128::from(to) - i128::from(from);
    let mut shape = tensor.shape.clone();
    for (size, &times) in shape.iter_mut().zip(times) {
        *size = i64::try_from(i128::from(*size) + i128::from(times) * more).ok()?;
    }
    let mut strides = tensor.strides.clone();
    if !tensor.is_sparse() {
        for (at, stride) in strides.iter_mut().enumerate() {
            // A stride spans the dimensions that lie within it.
            let own = *stride;
            for dim in (0..shape.len()).filter(|&dim| times[dim] > 0 && dim != at) {
                let inner = tensor.strides[dim];
                let spans =
                    inner > 0 && own >= inner.saturating_mul(tensor.shape[dim]) && tensor.shape[dim] > 0;
                if spans {
                    *stride = stride.saturating_mul(shape[dim]) / tensor.shape[dim];
                }
            }
        }
    }
    Some(Tensor { shape, strides, ..tensor.clone() })
}

#[cfg(test)]
mod tests {
    use steptime_aten::Dtype::F32;

    use super::*;

    #[test]
    fn strides_span_what_has_grown() {
        let tensor = Tensor::strided(&[4, 6], &[1, 4], F32);
        let grown = resized(&tensor, &[1, 0], [4, 8]).unwrap();
        assert_eq!((grown.shape.as_slice(), grown.strides.as_slice()), (&[8, 6][..], &[1, 8][..]));
        let grown = resized(&Tensor::contiguous(&[4, 6, 5], F32), &[1, 0, 0], [4, 16]).unwrap();
        assert_eq!((grown.shape[0], grown.strides.as_slice()), (16, &[30, 5, 1][..]));
    }

    #[test]
    fn a_part_of_a_dimension_grows() {
        let grown = resized(&Tensor::contiguous(&[2048, 100], F32), &[0, 1], [64, 128]).unwrap();
        assert_eq!((grown.shape.as_slice(), grown.strides.as_slice()), (&[2048, 164][..], &[164, 1][..]));
        // The ends of bags have one more.
        let ends = resized(&Tensor::contiguous(&[2049], F32), &[1], [2048, 512]).unwrap();
        assert_eq!(ends.shape.as_slice(), &[513]);
        assert!(resized(&ends, &[1], [512, u64::MAX]).is_none());
    }
}
