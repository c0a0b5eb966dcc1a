//! Bags one lookup at a time: the reference that the fast versions match bit by bit, and the fallback without them.

use super::chunk::{Bags, Chunk, Output, Slice};
use crate::embedding::codec::{decode, each_bf16, each_f16, each_f32, nibbles, scale_and_bias};
use crate::embedding::{Bounds, Element, EmbeddingError, Lookups, Pooling, Report, Table, Tables};

/// The forward pass, `[B, D_0 + D_1 + ...]` with rows `stride` apart, one bag after the other.
///
/// # Errors
///
/// As for [`forward`](super::forward).
pub fn forward_reference(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    bounds: Bounds,
    out: &mut [f32],
    stride: usize,
) -> Result<Report, EmbeddingError> {
    lookups.check_shape(tables)?;
    super::check_output(tables, lookups, out.len(), stride)?;
    let mut report = Report::default();
    for (table, rows) in tables.iter().enumerate() {
        lookups.report(tables, table, 0..lookups.bags(), bounds, &mut report)?;
        let source = Bags::from_lookups(lookups, table);
        for bag in 0..lookups.bags() {
            let out = &mut out[bag * stride + tables.column(table)..][..rows.dim()];
            pool(rows, tables.pooling(table), &source, bag, bounds, out);
        }
    }
    Ok(report)
}

/// Pools a chunk's bags.
///
/// # Safety
///
/// No other code holds the columns of this table in the output rows of these bags.
pub(super) unsafe fn pool_chunk(chunk: &Chunk<'_>, bounds: Bounds, out: Output<'_>) {
    let mut whole = vec![0.0; chunk.table.dim()];
    let slice = Slice::new(chunk.table, chunk.columns.clone());
    for bag in chunk.bags.clone() {
        // SAFETY: by the caller's promise.
        let out = unsafe { out.row(bag, slice) };
        pool(chunk.table, chunk.pooling, &chunk.source, bag, bounds, &mut whole);
        out.copy_from_slice(&whole[chunk.columns.clone()]);
    }
}

/// Pools the rows of a bag. A bag of [`Pooling::None`] is one lookup.
///
/// Sums are taken in the order of the lookups, one rounding for each: `acc + x`, `fma(w, x, acc)`, for int8
/// `fma(q, w * scale, acc)` with the sum of `w * bias` added at the end, for int4 `acc + fma(q, w * scale, w * bias)`.
pub(super) fn pool(
    table: &Table<'_>,
    pooling: Pooling,
    source: &Bags<'_>,
    bag: usize,
    bounds: Bounds,
    out: &mut [f32],
) {
    out.fill(0.0);
    let (mut count, mut bias) = (0_u32, 0.0);
    let alone = pooling == Pooling::None && source.weights.is_none();
    let compare = alone || pooling == Pooling::Max;
    let mut row_values = if compare { vec![0.0; table.dim()] } else { Vec::new() };
    for place in source.bag(bag) {
        let row = usize::try_from(source.indices.at(place)).ok().filter(|&row| row < table.rows());
        if row.is_none() && bounds == Bounds::Ignore {
            continue;
        }
        if compare {
            match row {
                Some(row) => decode(table.element(), table.row(row), &mut row_values),
                None => row_values.fill(0.0),
            }
            let larger = |out: f32, value| if value > out || count == 0 { value } else { out };
            out.iter_mut().zip(&row_values).for_each(|(out, &value)| *out = larger(*out, value));
        } else if let Some(row) = row {
            bias += add(table.element(), table.row(row), source.weights.map(|all| all[place]), out);
        }
        count += 1;
    }
    if matches!(table.element(), Element::Int8(_)) && !compare {
        out.iter_mut().for_each(|out| *out += bias);
    }
    if pooling == Pooling::Mean && count > 0 {
        let scale = 1.0 / count as f32;
        out.iter_mut().for_each(|out| *out *= scale);
    }
}

/// Adds a row, and returns the bias still to be added.
fn add(element: Element, row: &[u8], weight: Option<f32>, out: &mut [f32]) -> f32 {
    fn sum(out: &mut [f32], weight: Option<f32>, values: impl Iterator<Item = f32>) {
        match weight {
            None => out.iter_mut().zip(values).for_each(|(out, value)| *out += value),
            Some(weight) => {
                out.iter_mut().zip(values).for_each(|(out, value)| *out = weight.mul_add(value, *out))
            }
        }
    }
    match element {
        Element::F32 => sum(out, weight, each_f32(row)),
        Element::F16 => sum(out, weight, each_f16(row)),
        Element::Bf16 => sum(out, weight, each_bf16(row)),
        Element::Int8(kind) => {
            let (scale, bias) = scale_and_bias(row, kind);
            let weight = weight.unwrap_or(1.0);
            sum(out, Some(scale * weight), row[kind.bytes()..].iter().map(|&q| f32::from(q)));
            return bias * weight;
        }
        Element::Int4(kind) => {
            let (scale, bias) = scale_and_bias(row, kind);
            let weight = weight.unwrap_or(1.0);
            let (scale, bias) = (scale * weight, bias * weight);
            sum(out, None, nibbles(&row[kind.bytes()..]).map(|q| q.mul_add(scale, bias)));
        }
    }
    0.0
}
