//! Shapes with another batch.

use steptime_aten::{Arg, OpSet, Tensor};
use steptime_step::{OpId, Patch, Step, TensorId};

use super::labels::Labels;
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
        if labels.of(id).iter().any(|&grows| grows) {
            let value = resized(&tensor.value, labels.of(id), [from, to]);
            let value = value.map_err(|size| Error::Uneven { op: taker(step, id), size, batch: from })?;
            patch.reshape.push((id, value));
        }
    }
    let new = |id: TensorId| patch.reshape.binary_search_by_key(&id, |(id, _)| *id).ok();
    let mut changes = Vec::new();
    for op in step.running() {
        let Some(call) = &step.ops[op].call else { continue };
        let mut changed = call.clone();
        for arg in &mut changed.inputs {
            let Arg::Ints(sizes) = arg else { continue };
            let same = |id: &TensorId| step.tensors[*id].value.shape[..] == sizes[..];
            if let Some(at) = call.gives().find(same).and_then(new) {
                *sizes = patch.reshape[at].1.shape.iter().copied().collect();
            }
        }
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
    let call = step.call(op).filter(|call| call.name.contains("group_norm"))?;
    let bound = ops.bind(&call)?;
    bound.has("N").then(|| bound.position("N")).flatten()
}

/// Where a gradient of a table is told how many rows that has.
fn rows(step: &Step, op: OpId, ops: &OpSet) -> Option<usize> {
    let call = step.call(op).filter(|call| call.name.contains("embedding"))?;
    let bound = ops.bind(&call)?;
    bound.has("num_weights").then(|| bound.position("num_weights")).flatten()
}

/// The name of an op that takes or makes a tensor.
fn taker(step: &Step, tensor: TensorId) -> String {
    let names = |op| {
        let row: &steptime_step::Op = &step.ops[op];
        row.call.as_ref().is_some_and(|call| call.takes().chain(call.gives()).any(|other| other == tensor))
    };
    step.running().into_iter().find(|&op| names(op)).map_or_else(String::new, |op| step.ops[op].name.clone())
}

/// A tensor whose labelled dimensions have grown. The sizes that cannot be scaled are the error.
fn resized(tensor: &Tensor, grows: &[bool], [from, to]: [u64; 2]) -> Result<Tensor, i64> {
    let mut shape = tensor.shape.clone();
    for (size, _) in shape.iter_mut().zip(grows).filter(|(_, grows)| **grows) {
        *size = scaled(*size, from, to).ok_or(*size)?;
    }
    let mut strides = tensor.strides.clone();
    if !tensor.is_sparse() {
        for (at, stride) in strides.iter_mut().enumerate() {
            // A stride spans the dimensions that lie within it.
            let own = *stride;
            for dim in (0..shape.len()).filter(|&dim| grows[dim] && dim != at) {
                let inner = tensor.strides[dim];
                let spans =
                    inner > 0 && own >= inner.saturating_mul(tensor.shape[dim]) && tensor.shape[dim] > 0;
                if spans {
                    *stride = stride.saturating_mul(shape[dim]) / tensor.shape[dim];
                }
            }
        }
    }
    Ok(Tensor { shape, strides, ..tensor.clone() })
}

/// A size that is a multiple of the batch, or one more.
fn scaled(size: i64, from: u64, to: u64) -> Option<i64> {
    let times = |size: i64| {
        let product = i128::from(size) * i128::from(to);
        (product % i128::from(from) == 0).then(|| i64::try_from(product / i128::from(from)).ok()).flatten()
    };
    times(size).or_else(|| times(size - 1)?.checked_add(1))
}

#[cfg(test)]
mod tests {
    use steptime_aten::Dtype::F32;

    use super::*;

    #[test]
    fn strides_span_what_has_grown() {
        let tensor = Tensor::strided(&[4, 6], &[1, 4], F32);
        let grown = resized(&tensor, &[true, false], [4, 8]).unwrap();
        assert_eq!((grown.shape.as_slice(), grown.strides.as_slice()), (&[8, 6][..], &[1, 8][..]));
        let grown = resized(&Tensor::contiguous(&[4, 6, 5], F32), &[true, false, false], [4, 16]).unwrap();
        assert_eq!((grown.shape[0], grown.strides.as_slice()), (16, &[30, 5, 1][..]));
    }

    #[test]
    fn ends_of_bags_have_one_more() {
        assert_eq!(scaled(2048, 2048, 512), Some(512));
        assert_eq!(scaled(2049, 2048, 512), Some(513));
        assert_eq!(scaled(7, 2048, 512), None);
    }
}
