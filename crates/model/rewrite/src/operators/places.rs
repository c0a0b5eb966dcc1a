//! Pieces of one memory: rows or columns of a matrix.

use steptime_aten::Tensor;
use steptime_step::{TensorId, Uses};

use super::views::Views;

/// A tensor whose rows are the pieces.
pub(super) fn rows(views: &Views<'_>, uses: &Uses, pieces: &[TensorId]) -> Option<TensorId> {
    let mut next = views.value(pieces[0]).offset;
    for &piece in pieces {
        let value = views.value(piece);
        if !value.is_contiguous() || value.offset != next {
            return None;
        }
        next = next.saturating_add(value.numel());
    }
    let first = views.value(pieces[0]);
    let count: u64 = pieces.iter().map(|&piece| views.value(piece).numel()).sum();
    joined_tensor(views, uses, pieces, |value| {
        let begins = value.is_contiguous() && value.offset == first.offset && value.numel() == count;
        begins.then_some(value.shape.len() != 1)
    })
}

/// A matrix whose columns are the pieces.
pub(super) fn columns(views: &Views<'_>, uses: &Uses, pieces: &[TensorId]) -> Option<TensorId> {
    let (first, count) = (views.value(pieces[0]), pieces.len() as i64);
    for (at, &piece) in (0..).zip(pieces) {
        let value = views.value(piece);
        let one = value.numel() as i64 == value.size(0) && value.strides.first() == Some(&count);
        if !one || value.size(0) != first.size(0) || value.offset != first.offset + at {
            return None;
        }
    }
    joined_tensor(views, uses, pieces, |value| {
        let all = value.shape[..] == [first.size(0), count]
            && value.is_contiguous()
            && value.offset == first.offset;
        all.then_some(false)
    })
}

/// A tensor in the memory of all pieces; of several the one that ranks first, then the oldest.
fn joined_tensor(
    views: &Views<'_>,
    uses: &Uses,
    pieces: &[TensorId],
    rank: impl Fn(&Tensor) -> Option<bool>,
) -> Option<TensorId> {
    let tensors = &views.step.tensors;
    let storage = tensors.get(pieces[0])?.storage?;
    if pieces.iter().any(|&piece| tensors.get(piece).and_then(|piece| piece.storage) != Some(storage)) {
        return None;
    }
    let device = tensors[pieces[0]].value.device;
    let there = tensors.iter_enumerated().filter(|(at, row)| {
        row.storage == Some(storage) && row.value.device == device && !uses.consumers(*at).is_empty()
    });
    there.filter_map(|(at, row)| Some((rank(&row.value)?, at))).min().map(|(_, at)| at)
}
