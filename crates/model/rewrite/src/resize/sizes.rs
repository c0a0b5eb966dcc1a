//! Shapes for another batch size.

use steptime_aten::{Arg, OpSet, Tensor};
use steptime_step::{OpId, Patch, StepIr, TensorId};

use super::dimension_sizes::Forms;
use super::pieces::Pieces;
use super::size_formula::Form;
use crate::error::Error;

/// The patch that sets the new shape of every tensor, and the new numbers of every list of sizes.
pub(super) fn patch(
    step: &StepIr,
    forms: &Forms,
    ops: &OpSet,
    rule: &'static str,
    to: u64,
) -> Result<Patch, Error> {
    let mut patch = Patch::new(rule);
    for (id, tensor) in step.tensors.iter_enumerated() {
        if forms.grows(id) {
            let value = resized(&tensor.value, forms.get(id), to);
            let value = value.ok_or_else(|| Error::TooLarge { op: taker(step, id) })?;
            patch.reshape.push((id, value));
        }
    }
    let new = |id: TensorId| patch.reshape.binary_search_by_key(&id, |(id, _)| *id).ok();
    let pieces = Pieces::find(step);
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
        for at in 0..changed.inputs.len() {
            if let Arg::Ints(sizes) = &mut changed.inputs[at] {
                let shaped = |id: &TensorId| new(*id).filter(|_| is_shape(&step.tensors[*id].value, sizes));
                let Some(found) = call.gives().find_map(|id| shaped(&id)) else { continue };
                let now = &patch.reshape[found].1;
                sizes
                    .iter_mut()
                    .zip(&now.shape)
                    .filter(|(size, _)| **size >= 0)
                    .for_each(|(size, now)| *size = *now);
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

/// Whether a list of sizes is the shape of a tensor. One of them may be -1.
fn is_shape(tensor: &Tensor, sizes: &[i64]) -> bool {
    sizes.len() == tensor.shape.len()
        && sizes.iter().zip(&tensor.shape).all(|(&size, &own)| size == own || size == -1)
}

/// Position of the argument with the number of samples, as in group norm.
fn samples(step: &StepIr, op: OpId, ops: &OpSet) -> Option<usize> {
    let call = step.ops[op].name.contains("group_norm").then(|| step.call(op)).flatten()?;
    let bound = ops.bind(call)?;
    bound.has("N").then(|| bound.position("N")).flatten()
}

/// Position of the argument with the number of rows, in the gradient of a table.
fn rows(step: &StepIr, op: OpId, ops: &OpSet) -> Option<usize> {
    let call = step.ops[op].name.contains("embedding").then(|| step.call(op)).flatten()?;
    let bound = ops.bind(call)?;
    bound.has("num_weights").then(|| bound.position("num_weights")).flatten()
}

/// Name of an op that takes or makes a tensor.
fn taker(step: &StepIr, tensor: TensorId) -> String {
    let names = |op| {
        let row: &steptime_step::Op = &step.ops[op];
        row.call.as_deref().is_some_and(|call| call.takes().chain(call.gives()).any(|other| other == tensor))
    };
    step.running().into_iter().find(|&op| names(op)).map_or_else(String::new, |op| step.ops[op].name.clone())
}

/// A tensor resized to a new growing size; `None` where a size overflows.
fn resized(tensor: &Tensor, forms: &[Option<Form>], to: u64) -> Option<Tensor> {
    let to = i64::try_from(to).ok()?;
    let mut shape = tensor.shape.clone();
    for (size, form) in shape.iter_mut().zip(forms) {
        if let Some(form) = form {
            *size = form.size(to)?.max(0);
        }
    }
    let mut strides = tensor.strides.clone();
    if !tensor.is_sparse() {
        for (at, stride) in strides.iter_mut().enumerate() {
            // A stride spans the dimensions inside it.
            let own = *stride;
            for dim in (0..shape.len()).filter(|&dim| shape[dim] != tensor.shape[dim] && dim != at) {
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

    use super::super::size_formula::Factor;
    use super::*;

    fn resize(tensor: &Tensor, factors: &[Option<Factor>], to: u64) -> Option<Tensor> {
        let forms: Vec<Option<Form>> = factors.iter().map(|factor| factor.map(Form::from_factor)).collect();
        resized(tensor, &forms, to)
    }

    #[test]
    fn strides_span_what_has_grown() {
        let batch = Some(Factor::times(1));
        let tensor = Tensor::strided(&[4, 6], &[1, 4], F32);
        let larger = resize(&tensor, &[batch, None], 8).unwrap();
        assert_eq!((larger.shape.as_slice(), larger.strides.as_slice()), (&[8, 6][..], &[1, 8][..]));
        let larger = resize(&Tensor::contiguous(&[4, 6, 5], F32), &[batch, None, None], 16).unwrap();
        assert_eq!((larger.shape[0], larger.strides.as_slice()), (16, &[30, 5, 1][..]));
        // A batch of one, positions first.
        let larger = resize(&Tensor::contiguous(&[128, 1, 64], F32), &[None, batch, None], 4).unwrap();
        assert_eq!((larger.shape[1], larger.strides.as_slice()), (4, &[256, 64, 1][..]));
    }

    #[test]
    fn a_part_of_a_dimension_grows() {
        let part = Form::from_factor(Factor::times(1)).plus(36).unwrap();
        let tensor = Tensor::contiguous(&[2048, 100], F32);
        let larger = resized(&tensor, &[None, Some(part.clone())], 128).unwrap();
        assert_eq!((larger.shape.as_slice(), larger.strides.as_slice()), (&[2048, 164][..], &[164, 1][..]));
        assert!(resized(&Tensor::contiguous(&[100], F32), &[Some(part)], u64::MAX).is_none());
    }
}
