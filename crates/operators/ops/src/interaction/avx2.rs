//! The loops over one sample with 8 floats at a time. All 256-bit unsafe code is here.
//!
//! Tiles are 2 x 4 pairs in the triangle (8 accumulators), and up to 6 rows x 16 columns in the product of the backward
//! pass (12 accumulators).

use std::arch::x86_64::*;

use super::Interaction;
use crate::arch::Avx2;

const LANES: usize = 8;

/// A mask of the lowest `count` lanes, or of all lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn low(count: usize) -> __m256i {
    let count = _mm256_set1_epi32(count.min(LANES) as i32);
    _mm256_cmpgt_epi32(count, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
}

/// Computes the dot products of all pairs, in order.
pub(super) fn triangle(_: Avx2, of: &Interaction, rows: &[&[f32]], pairs: &mut [f32]) {
    assert!(
        rows.len() == of.features && rows.iter().all(|row| row.len() == of.dim) && pairs.len() == of.pairs()
    );
    // SAFETY: the token proves that the processor has AVX2, FMA and F16C; lengths are checked above.
    unsafe { triangle_256(of, rows, pairs) }
}

/// # Safety
///
/// There are `F` rows of `D` floats, and `P` pairs.
#[target_feature(enable = "avx2,fma")]
unsafe fn triangle_256(of: &Interaction, rows: &[&[f32]], pairs: &mut [f32]) {
    // Rows past the last repeat it; their sums are not stored.
    let row = |at: usize| rows[at.min(rows.len() - 1)].as_ptr();
    for i in (0..rows.len()).step_by(2) {
        for j in (0..=i + 1).step_by(4) {
            // SAFETY: each pointer is to `D` floats.
            let sums = unsafe { tile_2x4([row(i), row(i + 1)], [0, 1, 2, 3].map(|at| row(j + at)), of.dim) };
            let lanes = [_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums)];
            for (at, lane) in (i..rows.len().min(i + 2)).zip(lanes) {
                let row = &mut pairs[of.row_start(at)..][..of.row_len(at)];
                let mut four = [0.0; 4];
                // SAFETY: four floats.
                unsafe { _mm_storeu_ps(four.as_mut_ptr(), lane) };
                let count = row.len().saturating_sub(j).min(4);
                if count > 0 {
                    row[j..j + count].copy_from_slice(&four[..count]);
                }
            }
        }
    }
}

/// The dot products of two vectors with four others: lane `4 i + j` is that of `left[i]` and `right[j]`.
///
/// # Safety
///
/// Each pointer is to `dim` floats.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn tile_2x4(left: [*const f32; 2], right: [*const f32; 4], dim: usize) -> __m256 {
    let mut sums = [[_mm256_setzero_ps(); 4]; 2];
    let whole = dim - dim % LANES;
    for at in (0..whole).step_by(LANES) {
        // SAFETY: 8 floats from `at` on are below `dim`.
        let load = |from: *const f32| unsafe { _mm256_loadu_ps(from.add(at)) };
        let left = left.map(load);
        for (j, right) in right.into_iter().enumerate() {
            let right = load(right);
            for i in 0..2 {
                sums[i][j] = _mm256_fmadd_ps(left[i], right, sums[i][j]);
            }
        }
    }
    if whole < dim {
        let mask = low(dim - whole);
        // SAFETY: lanes in the mask are below `dim`; the others are not read.
        let load = |from: *const f32| unsafe { _mm256_maskload_ps(from.add(whole), mask) };
        let left = left.map(load);
        for (j, right) in right.into_iter().enumerate() {
            let right = load(right);
            for i in 0..2 {
                sums[i][j] = _mm256_fmadd_ps(left[i], right, sums[i][j]);
            }
        }
    }
    let [a, b] = sums.map(|row| sum_of_halves(row));
    _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b))
}

/// Sums within 128-bit parts: lane `j` of each part is the sum of that part of `rows[j]`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn sum_of_halves([a, b, c, d]: [__m256; 4]) -> __m256 {
    _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d))
}

/// Computes `out = square x rows`, and adds `dense` to the first row.
pub(super) fn product(
    _: Avx2,
    square: &[f32],
    rows: &[&[f32]],
    dense: &[f32],
    out: &mut [&mut [f32]],
    stream: bool,
) {
    let (f, d) = (rows.len(), dense.len());
    assert!(square.len() == f * f && out.len() == f && rows.iter().all(|row| row.len() == d));
    assert!(out.iter().all(|row| row.len() == d));
    let stream = stream && out.iter().all(|row| row.as_ptr().addr().is_multiple_of(32));
    let tiles = f.div_ceil(6);
    for tile in 0..tiles {
        let first = f * tile / tiles;
        let out = &mut out[first..f * (tile + 1) / tiles];
        // Columns are the inner loop: otherwise the same columns of the next tile would be read while those of this
        // one, which may be a multiple of 4 KiB away, are being written, and processors take the two for one address.
        for column in (0..d).step_by(2 * LANES) {
            let work = Product { square, rows, dense, first, column, stream };
            // SAFETY: the token proves that the processor has AVX2, FMA and F16C; lengths and alignment are checked
            // above; a tile has as many outputs as its constant size.
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

/// A tile of the product: rows from `first`, two vectors of columns from `column`.
struct Product<'a> {
    square: &'a [f32],
    rows: &'a [&'a [f32]],
    dense: &'a [f32],
    first: usize,
    column: usize,
    stream: bool,
}

impl Product<'_> {
    /// # Safety
    ///
    /// `square` is `F x F` floats; there are `F` rows, and they, `dense` and outputs are `D` floats each; `out` are the
    /// `R` outputs from `first`, with `stream` aligned to 32 bytes.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile<const R: usize>(&self, out: &mut [&mut [f32]]) {
        let (f, left) = (self.rows.len(), self.dense.len() - self.column);
        let whole = left >= 2 * LANES;
        let masks = [low(left), low(left.saturating_sub(LANES))];
        let load = |from: &[f32]| {
            let from = from.as_ptr().wrapping_add(self.column);
            [0, 1].map(|half| {
                let from = from.wrapping_add(half * LANES);
                if whole {
                    // SAFETY: 16 floats from `column` on are inside of the row.
                    unsafe { _mm256_loadu_ps(from) }
                } else {
                    // SAFETY: lanes in the masks are inside of the row; the others are not read.
                    unsafe { _mm256_maskload_ps(from, masks[half]) }
                }
            })
        };
        let mut sums = [[_mm256_setzero_ps(); 2]; R];
        if self.first == 0 {
            sums[0] = load(self.dense);
        }
        for (j, row) in self.rows.iter().enumerate() {
            let row = load(row);
            // The matrix is symmetric: column `first..` of row `j` is row `j` of columns `first..`.
            let weights = self.square.as_ptr().wrapping_add(j * f + self.first);
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: `first + R` is at most `f`, and `square` has `f` rows of `f`.
                let weight = _mm256_set1_ps(unsafe { *weights.add(i) });
                sums[0] = _mm256_fmadd_ps(weight, row[0], sums[0]);
                sums[1] = _mm256_fmadd_ps(weight, row[1], sums[1]);
            }
        }
        for (sums, out) in sums.into_iter().zip(out) {
            for half in 0..2 {
                let to = out.as_mut_ptr().wrapping_add(self.column + half * LANES);
                // SAFETY: only lanes inside of the row are written, past the caches only where aligned.
                unsafe {
                    if whole && self.stream {
                        _mm256_stream_ps(to, sums[half]);
                    } else if whole {
                        _mm256_storeu_ps(to, sums[half]);
                    } else {
                        _mm256_maskstore_ps(to, masks[half], sums[half]);
                    }
                }
            }
        }
    }
}
