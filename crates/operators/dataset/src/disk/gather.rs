//! Copies of stored rows, with their conversion to the types of batches.

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::{DenseType, IndexType, Selection};

/// Copies records of `per_row` numbers of `W` bytes; `first` is the file's row of the selection's row 0.
fn copy<const W: usize, T>(
    bytes: &[u8],
    per_row: usize,
    first: u64,
    rows: &Selection<'_>,
    to: &mut [T],
    convert: impl Fn([u8; W]) -> T,
) {
    let (stored, _) = bytes.as_chunks::<W>();
    match rows {
        Selection::Range(rows) => {
            let stored = &stored[(first + rows.start) as usize * per_row..][..to.len()];
            to.iter_mut().zip(stored).for_each(|(to, from)| *to = convert(*from));
        }
        Selection::List(rows) if per_row == 1 => {
            let stored = &stored[first as usize..];
            to.iter_mut().zip(*rows).for_each(|(to, &row)| *to = convert(stored[row as usize]));
        }
        Selection::List(rows) => {
            for (to, row) in to.chunks_exact_mut(per_row).zip(*rows) {
                let stored = &stored[(first + row) as usize * per_row..][..per_row];
                to.iter_mut().zip(stored).for_each(|(to, from)| *to = convert(*from));
            }
        }
    }
}

/// Copies dense values.
pub(super) fn dense(
    r#type: DenseType,
    bytes: &[u8],
    per_row: usize,
    first: u64,
    rows: &Selection<'_>,
    to: &mut [f32],
) {
    match r#type {
        DenseType::F32 => copy(bytes, per_row, first, rows, to, f32::from_le_bytes),
        DenseType::F16 => {
            // Rows of a slice are converted together, with the processor's instructions for it.
            const TOGETHER: usize = 64;
            let mut halves = vec![f16::ZERO; TOGETHER * per_row];
            for (part, to) in to.chunks_mut(TOGETHER * per_row).enumerate() {
                let start = part * TOGETHER;
                let count = to.len() / per_row;
                let part = match rows {
                    Selection::Range(rows) => {
                        let start = rows.start + start as u64;
                        Selection::Range(start..start + count as u64)
                    }
                    Selection::List(rows) => Selection::List(&rows[start..start + count]),
                };
                let halves = &mut halves[..to.len()];
                copy(bytes, per_row, first, &part, halves, f16::from_le_bytes);
                halves.convert_to_f32_slice(to);
            }
        }
    }
}

/// Copies indices, and returns the greatest one as an unsigned number: a negative index is greater than any other.
pub(super) fn indices(
    r#type: IndexType,
    bytes: &[u8],
    per_row: usize,
    first: u64,
    rows: &Selection<'_>,
    to: &mut [i32],
) -> u32 {
    match r#type {
        IndexType::U8 => copy(bytes, per_row, first, rows, to, |[byte]| i32::from(byte)),
        IndexType::U16 => {
            copy(bytes, per_row, first, rows, to, |bytes| i32::from(u16::from_le_bytes(bytes)));
        }
        IndexType::I32 => copy(bytes, per_row, first, rows, to, i32::from_le_bytes),
    }
    to.iter().fold(0, |greatest, index| greatest.max(index.cast_unsigned()))
}
