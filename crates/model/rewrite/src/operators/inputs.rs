//! Inputs of one call: the indices of all tables, one table after the other, and the offsets of all bags.

use steptime_aten::{Arg, Dtype};
use steptime_step::{NewOp, OpId, TensorId, Uses};

use super::copies::{grow, one_copy};
use super::groups::Group;
use super::index_origin::{self, Source};
use super::places::{columns, rows};
use super::views::Views;
use crate::new_ops::op;

/// Inputs made for earlier calls.
#[derive(Debug, Clone, Default)]
pub(super) struct InputCache {
    /// Keys are the joined pieces, or one matrix whose columns they are.
    indices: Vec<(Vec<TensorId>, TensorId)>,
    offsets: Vec<(i64, Dtype, TensorId)>,
}

impl InputCache {
    /// Numbers of stored indices and offsets.
    pub fn counts(&self) -> [usize; 2] {
        [self.indices.len(), self.offsets.len()]
    }

    /// Truncates to earlier counts.
    pub fn forget(&mut self, [indices, offsets]: [usize; 2]) {
        self.indices.truncate(indices);
        self.offsets.truncate(offsets);
    }
}

/// Indices and offsets of one call.
pub(super) struct Inputs {
    pub indices: TensorId,
    pub offsets: TensorId,
    /// The ops that join the indices.
    pub ops: Vec<NewOp>,
}

/// Makes the inputs; `removed` are the ops that took them before.
pub(super) fn build(
    views: &mut Views<'_>,
    uses: &Uses,
    group: &Group,
    removed: &[OpId],
    made: &mut InputCache,
) -> Inputs {
    let pieces: Vec<TensorId> = group.members.iter().map(|member| member.lookup.indices).collect();
    let columns = columns(views, uses, &pieces).filter(|_| pieces.len() > 1);
    let key = columns.map_or(pieces.clone(), |whole| vec![whole]);
    let known = made.indices.iter().find(|(known, _)| *known == key).map(|(_, indices)| *indices);
    let mut ops = Vec::new();
    let indices = known.unwrap_or_else(|| {
        let indices = match columns {
            Some(whole) => turned(views, whole, &mut ops),
            None => flat(views, uses, &pieces, removed, &mut ops),
        };
        made.indices.push((key, indices));
        indices
    });
    let offsets = offsets(views, uses, group, removed, made);
    Inputs { indices, offsets, ops }
}

/// The concatenated indices.
fn flat(
    views: &mut Views<'_>,
    uses: &Uses,
    pieces: &[TensorId],
    removed: &[OpId],
    ops: &mut Vec<NewOp>,
) -> TensorId {
    if let &[one] = pieces {
        return row(views, one, ops);
    }
    if let Some(whole) = rows(views, uses, pieces) {
        return row(views, whole, ops);
    }
    if let Some(copy) = one_copy(views, uses, pieces, removed) {
        return copy;
    }
    let each: Vec<TensorId> = pieces.iter().map(|&piece| row(views, piece, ops)).collect();
    let count = each.iter().map(|&piece| views.value(piece).numel() as i64).sum();
    let all = views.tensor(&[count], pieces[0]);
    ops.push(op("aten::cat", vec![Arg::Tensors(each), Arg::Int(0)], all));
    all
}

/// The concatenated columns of a matrix.
fn turned(views: &mut Views<'_>, whole: TensorId, ops: &mut Vec<NewOp>) -> TensorId {
    let count = [views.value(whole).numel() as i64];
    let (transpose, turned) = views.transposed(whole);
    let (reshape, flat) = views.reshape(turned, &count);
    ops.extend([transpose, reshape]);
    flat
}

/// A tensor in one dimension.
fn row(views: &mut Views<'_>, tensor: TensorId, ops: &mut Vec<NewOp>) -> TensorId {
    let value = views.value(tensor);
    if value.shape.len() == 1 && value.is_contiguous() {
        return tensor;
    }
    let count = [value.numel() as i64];
    let (op, flat) =
        if value.is_contiguous() { views.view(tensor, &count, None) } else { views.reshape(tensor, &count) };
    ops.push(op);
    flat
}

/// Offsets of all bags, with the end of the last one: copied to the device where a bag's offsets were, else from before the step like the tables.
fn offsets(
    views: &mut Views<'_>,
    uses: &Uses,
    group: &Group,
    removed: &[OpId],
    made: &mut InputCache,
) -> TensorId {
    let step = views.step;
    let each: Vec<TensorId> = group.members.iter().filter_map(|member| member.lookup.offsets).collect();
    let count = group.members[0].lookup.bags.saturating_mul(group.members.len() as i64).saturating_add(1);
    let gone = index_origin::unused(step, uses, &each, removed, &[]);
    let mut sources: Vec<Source> =
        each.iter().filter_map(|&each| index_origin::source(step, uses, each)).collect();
    sources.retain(|source| matches!(source, Source::Copied { op, .. } if gone.contains(op)));
    if let Some(&Source::Copied { op, from, to }) = sources.first() {
        grow(views, op, [from, to], count);
        return to;
    }
    let indices = group.members[0].lookup.indices;
    let dtype = step.tensors[indices].value.dtype;
    let known = made.offsets.iter().find(|(known, of, _)| (*known, *of) == (count, dtype));
    known.map(|(.., offsets)| *offsets).unwrap_or_else(|| {
        let offsets = views.tensor(&[count], indices);
        made.offsets.push((count, dtype, offsets));
        offsets
    })
}
