//! The loops over one sample with NEON. All unsafe NEON code of interactions is here.
//!
//! Tiles are 4 x 4 pairs in the triangle (16 accumulators), and up to 6 rows x 16 columns in the product of the backward
//! pass (24 accumulators). Outputs are written through the caches: NEON has no stores that bypass them.

use std::arch::aarch64::*;

use super::Interaction;
use crate::arch::Neon;

const LANES: usize = 4;

/// Number of vectors of columns of a tile of the product.
const VECTORS: usize = 4;

/// Computes the dot products of all pairs, in order.
pub(super) fn triangle(_: Neon, of: &Interaction, rows: &[&[f32]], pairs: &mut [f32]) {
    assert!(
        rows.len() == of.features && rows.iter().all(|row| row.len() == of.dim) && pairs.len() == of.pairs()
    );
    // Rows past the last repeat it; their sums are not stored.
    let four = |from: usize| [0, 1, 2, 3].map(|at| rows[(from + at).min(rows.len() - 1)]);
    for i in (0..rows.len()).step_by(4) {
        for j in (0..=i + 3).step_by(4) {
            // SAFETY: the token proves that the processor has NEON.
            let sums = unsafe { tile(four(i), four(j)) };
            for (at, sums) in (i..rows.len().min(i + 4)).zip(sums) {
                let row = &mut pairs[of.row_start(at)..][..of.row_len(at)];
                let count = row.len().saturating_sub(j).min(4);
                if count > 0 {
                    row[j..j + count].copy_from_slice(&sums[..count]);
                }
            }
        }
    }
}

/// The dot products of four vectors with four others, all of one length: `[i][j]` is that of `left[i]` and `right[j]`.
#[inline]
#[target_feature(enable = "neon")]
fn tile(left: [&[f32]; 4], right: [&[f32]; 4]) -> [[f32; 4]; 4] {
    let (left, left_rest) = (left.map(|row| row.as_chunks::<LANES>().0), left.map(rest));
    let (right, right_rest) = (right.map(|row| row.as_chunks::<LANES>().0), right.map(rest));
    let mut sums = [[vdupq_n_f32(0.0); 4]; 4];
    let whole = left[0].len();
    assert!(left.iter().chain(&right).all(|row| row.len() == whole), "vectors of different lengths");
    for at in 0..whole {
        add(&mut sums, left.map(|row| &row[at]), right.map(|row| &row[at]));
    }
    add(&mut sums, left_rest.each_ref(), right_rest.each_ref());
    sums.map(|[a, b, c, d]| {
        let all = vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
        let mut four = [0.0; 4];
        // SAFETY: four floats.
        unsafe { vst1q_f32(four.as_mut_ptr(), all) };
        four
    })
}

/// The elements after the last whole vector, padded with zeros.
#[inline]
fn rest(row: &[f32]) -> [f32; LANES] {
    let rest = row.as_chunks::<LANES>().1;
    let mut four = [0.0; LANES];
    four[..rest.len()].copy_from_slice(rest);
    four
}

/// Adds the products of four columns.
#[inline]
#[target_feature(enable = "neon")]
fn add(sums: &mut [[float32x4_t; 4]; 4], left: [&[f32; LANES]; 4], right: [&[f32; LANES]; 4]) {
    // SAFETY: four floats each.
    let load = |from: &[f32; LANES]| unsafe { vld1q_f32(from.as_ptr()) };
    let left = left.map(load);
    for (j, right) in right.into_iter().enumerate() {
        let right = load(right);
        for i in 0..4 {
            sums[i][j] = vfmaq_f32(sums[i][j], left[i], right);
        }
    }
}

/// Computes `out = square x rows`, and adds `dense` to the first row.
pub(super) fn product(_: Neon, square: &[f32], rows: &[&[f32]], dense: &[f32], out: &mut [&mut [f32]]) {
    let (f, d) = (rows.len(), dense.len());
    assert!(square.len() == f * f && out.len() == f && rows.iter().all(|row| row.len() == d));
    assert!(out.iter().all(|row| row.len() == d));
    let tiles = f.div_ceil(6);
    for tile in 0..tiles {
        let first = f * tile / tiles;
        let out = &mut out[first..f * (tile + 1) / tiles];
        for column in (0..d).step_by(VECTORS * LANES) {
            let work = Product { square, rows, dense, first, column };
            // SAFETY: the token proves that the processor has NEON; lengths are checked above; a tile has as many
            // outputs as its constant size.
            unsafe {
                match out.len() {
                    1 => work.tile::<1>(out),
                    2 => work.tile::<2>(out),
                    3 => work.tile::<3>(out),
                    4 => work.tile::<4>(out),
                    5 => work.tile::<5>(out),
                    _ => work.tile::<6>(out),
                }
            }
        }
    }
}

/// A tile of the product: rows from `first`, four vectors of columns from `column`.
struct Product<'a> {
    square: &'a [f32],
    rows: &'a [&'a [f32]],
    dense: &'a [f32],
    first: usize,
    column: usize,
}

impl Product<'_> {
    /// # Safety
    ///
    /// `square` is `F x F` floats; there are `F` rows, and they, `dense` and outputs are `D` floats each; `out` are the
    /// `R` outputs from `first`.
    #[target_feature(enable = "neon")]
    unsafe fn tile<const R: usize>(&self, out: &mut [&mut [f32]]) {
        let f = self.rows.len();
        let columns = (self.dense.len() - self.column).min(VECTORS * LANES);
        let mut sums = [[vdupq_n_f32(0.0); VECTORS]; R];
        if self.first == 0 {
            sums[0] = self.load(self.dense, columns);
        }
        for (j, row) in self.rows.iter().enumerate() {
            let row = self.load(row, columns);
            // The matrix is symmetric: column `first..` of row `j` is row `j` of columns `first..`.
            let weights = self.square.as_ptr().wrapping_add(j * f + self.first);
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: `first + R` is at most `f`, and `square` has `f` rows of `f`.
                let weight = unsafe { *weights.add(i) };
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum = vfmaq_n_f32(*sum, value, weight);
                }
            }
        }
        for (sums, out) in sums.into_iter().zip(out) {
            let mut values = [0.0; VECTORS * LANES];
            for (to, sum) in values.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                // SAFETY: four floats.
                unsafe { vst1q_f32(to.as_mut_ptr(), sum) };
            }
            out[self.column..][..columns].copy_from_slice(&values[..columns]);
        }
    }

    /// Loads these columns of a row; those past the last are zero.
    #[inline]
    #[target_feature(enable = "neon")]
    fn load(&self, row: &[f32], columns: usize) -> [float32x4_t; VECTORS] {
        let row = &row[self.column..][..columns];
        let mut copy = [0.0; VECTORS * LANES];
        let row = if let Some(row) = row.as_array::<{ VECTORS * LANES }>() {
            row
        } else {
            copy[..columns].copy_from_slice(row);
            &copy
        };
        // SAFETY: sixteen floats.
        [0, 1, 2, 3].map(|vector| unsafe { vld1q_f32(row.as_ptr().add(vector * LANES)) })
    }
}
