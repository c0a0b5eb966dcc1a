//! Merged copies of a batch from the host.

use steptime_aten::{Arg, Tensor};
use steptime_step::{OpId, TensorId, Uses};

use super::index_origin::{self, Source};
use super::views::Views;

/// Merges copies from the host with no other consumers into one.
pub(super) fn one_copy(
    views: &mut Views<'_>,
    uses: &Uses,
    pieces: &[TensorId],
    removed: &[OpId],
) -> Option<TensorId> {
    let step = views.step;
    let gone = index_origin::unused(step, uses, pieces, removed, &[]);
    let mut copies = Vec::new();
    for &piece in pieces {
        match index_origin::source(step, uses, piece)? {
            Source::Copied { op, from, to } if to == piece && gone.contains(&op) => copies.push((op, from)),
            _ => return None,
        }
    }
    let count = pieces.iter().map(|&piece| views.value(piece).numel() as i64).sum();
    let distinct = copies.iter().enumerate().all(|(at, copy)| !copies[..at].contains(copy));
    let flat = pieces.iter().all(|&piece| views.value(piece).shape.len() == 1);
    let (op, from) = *copies.iter().min()?;
    if !distinct || !flat {
        return None;
    }
    let to = pieces[copies.iter().position(|copy| *copy == (op, from))?];
    grow(views, op, [from, to], count);
    Some(to)
}

/// Resizes a copy.
pub(super) fn grow(views: &mut Views<'_>, copy: OpId, tensors: [TensorId; 2], count: i64) {
    let was = views.value(tensors[0]);
    for tensor in tensors {
        let value = views.value(tensor);
        let grown = Tensor { shape: [count].as_slice().into(), strides: [1].as_slice().into(), ..value };
        views.patch.reshape.push((tensor, grown));
    }
    for op in views.step.subtree(copy) {
        let Some(call) = &views.step.ops[op].call else { continue };
        let mut changed = steptime_step::Call::clone(call);
        for arg in &mut changed.inputs {
            if matches!(arg, Arg::Ints(sizes) if sizes[..] == was.shape[..]) {
                *arg = Arg::Ints([count].into_iter().collect());
            }
        }
        if changed != **call {
            views.patch.change.push((op, changed));
        }
    }
}
