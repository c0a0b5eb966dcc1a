//! The loops over one sample with 16 floats at a time. All 512-bit unsafe code is here.
//!
//! The triangle is divided into tiles of 4 x 4 pairs: 16 accumulators of 16 partial sums each, for 8 loads a step,
//! reduced to 16 sums by 45 instructions at the end. The product of the backward pass is divided into tiles of up to 14
//! rows x 32 columns: 28 accumulators, 2 loads and 14 broadcasts a step.

use std::arch::x86_64::*;

use super::Interaction;
use crate::arch::Avx512;

const LANES: usize = 16;

/// Waits for stores that bypass the caches.
pub(super) fn fence() {
    // SAFETY: every x86-64 processor has this instruction, and it touches no memory of the program.
    unsafe { _mm_sfence() }
}

/// Prefetches the lines of a slice into the second-level cache.
pub(super) fn prefetch(row: &[f32]) {
    for line in row.chunks(LANES) {
        // SAFETY: every x86-64 processor has this instruction, and any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
}

/// A mask of the lowest `count` lanes, or of all lanes.
fn low(count: usize) -> __mmask16 {
    if count >= LANES { !0 } else { (1 << count) - 1 }
}

/// Computes the dot products of all pairs, in order.
pub(super) fn triangle(_: Avx512, of: &Interaction, rows: &[&[f32]], pairs: &mut [f32]) {
    assert!(
        rows.len() == of.features && rows.iter().all(|row| row.len() == of.dim) && pairs.len() == of.pairs()
    );
    // SAFETY: the token proves that the processor has AVX-512; lengths are checked above.
    unsafe { triangle_512(of, rows, pairs) }
}

/// # Safety
///
/// There are `F` rows of `D` floats, and `P` pairs.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
unsafe fn triangle_512(of: &Interaction, rows: &[&[f32]], pairs: &mut [f32]) {
    // Rows past the last repeat it; their sums are not stored.
    let four = |first: usize| [0, 1, 2, 3].map(|at| rows[(first + at).min(rows.len() - 1)].as_ptr());
    for i in (0..rows.len()).step_by(4) {
        let left = four(i);
        for j in (0..=i).step_by(4) {
            // SAFETY: each pointer is to `D` floats.
            let sums = unsafe { tile_4x4(left, four(j), of.dim) };
            let lanes = [
                _mm512_castps512_ps128(sums),
                _mm512_extractf32x4_ps::<1>(sums),
                _mm512_extractf32x4_ps::<2>(sums),
                _mm512_extractf32x4_ps::<3>(sums),
            ];
            for (at, lane) in (i..rows.len().min(i + 4)).zip(lanes) {
                let row = &mut pairs[of.row_start(at)..][..of.row_len(at)];
                let to = row.as_mut_ptr().wrapping_add(j);
                let count = row.len().saturating_sub(j);
                if count >= 4 {
                    // SAFETY: four floats from `j` on are inside of the row.
                    unsafe { _mm_storeu_ps(to, lane) };
                } else {
                    // SAFETY: only the `count` floats that are inside of the row are written.
                    unsafe { _mm_mask_storeu_ps(to, (1 << count) - 1, lane) };
                }
            }
        }
    }
}

/// The dot products of four vectors with four others: lane `4 i + j` is that of `left[i]` and `right[j]`.
///
/// # Safety
///
/// Each pointer is to `dim` floats.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
unsafe fn tile_4x4(left: [*const f32; 4], right: [*const f32; 4], dim: usize) -> __m512 {
    let mut sums = [[_mm512_setzero_ps(); 4]; 4];
    let mut step = |at: usize, mask: __mmask16| {
        // SAFETY: lanes in the mask are below `dim`; the others are not read.
        let load = |from: *const f32| unsafe { _mm512_maskz_loadu_ps(mask, from.add(at)) };
        let left = left.map(load);
        for (j, right) in right.into_iter().enumerate() {
            let right = load(right);
            for i in 0..4 {
                sums[i][j] = _mm512_fmadd_ps(left[i], right, sums[i][j]);
            }
        }
    };
    let whole = dim - dim % LANES;
    for at in (0..whole).step_by(LANES) {
        step(at, !0);
    }
    if whole < dim {
        step(whole, low(dim - whole));
    }
    let [a, b, c, d] = sums.map(|row| sum_of_quarters(row));
    let ab = add_pairs(a, b);
    let cd = add_pairs(c, d);
    add_pairs(ab, cd)
}

/// Sums within 128-bit parts: lane `j` of each part is the sum of that part of `rows[j]`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn sum_of_quarters([a, b, c, d]: [__m512; 4]) -> __m512 {
    let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    let (low, high) = (_mm512_unpacklo_pd(ab, cd), _mm512_unpackhi_pd(ab, cd));
    _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high))
}

/// Sums of neighbouring 128-bit parts, those of `a` first.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn add_pairs(a: __m512, b: __m512) -> __m512 {
    _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b))
}

/// Computes `out = square x rows`, and adds `dense` to the first row.
pub(super) fn product(
    _: Avx512,
    square: &[f32],
    rows: &[&[f32]],
    dense: &[f32],
    out: &mut [&mut [f32]],
    stream: bool,
) {
    let (f, d) = (rows.len(), dense.len());
    assert!(square.len() == f * f && out.len() == f && rows.iter().all(|row| row.len() == d));
    assert!(out.iter().all(|row| row.len() == d));
    let stream = stream && out.iter().all(|row| row.as_ptr().addr().is_multiple_of(64));
    // SAFETY: the token proves that the processor has AVX-512; lengths and alignment are checked above.
    unsafe { product_512(square, rows, dense, out, stream) }
}

/// # Safety
///
/// `square` is `F x F` floats; there are `F` rows and outputs, and they and `dense` are `D` floats each; with `stream`,
/// outputs are aligned to 64 bytes.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
unsafe fn product_512(square: &[f32], rows: &[&[f32]], dense: &[f32], out: &mut [&mut [f32]], stream: bool) {
    let f = rows.len();
    let tiles = f.div_ceil(14);
    for tile in 0..tiles {
        let first = f * tile / tiles;
        let out = &mut out[first..f * (tile + 1) / tiles];
        // Columns are the inner loop: otherwise the same columns of the next tile would be read while those of this
        // one, which may be a multiple of 4 KiB away, are being written, and processors take the two for one address.
        for column in (0..dense.len()).step_by(2 * LANES) {
            let work = Product { square, rows, dense, first, column, stream };
            // SAFETY: by the caller's promise; a tile has as many outputs as its constant size.
            unsafe {
                match out.len() {
                    1 => work.tile::<1>(out),
                    2 => work.tile::<2>(out),
                    3 => work.tile::<3>(out),
                    4 => work.tile::<4>(out),
                    5 => work.tile::<5>(out),
                    6 => work.tile::<6>(out),
                    7 => work.tile::<7>(out),
                    8 => work.tile::<8>(out),
                    9 => work.tile::<9>(out),
                    10 => work.tile::<10>(out),
                    11 => work.tile::<11>(out),
                    12 => work.tile::<12>(out),
                    13 => work.tile::<13>(out),
                    _ => work.tile::<14>(out),
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
    /// As for [`product_512`]; `out` are the `R` outputs from `first`.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    unsafe fn tile<const R: usize>(&self, out: &mut [&mut [f32]]) {
        let (f, left) = (self.rows.len(), self.dense.len() - self.column);
        let masks = [low(left), low(left.saturating_sub(LANES))];
        let load = |from: &[f32]| {
            let from = from.as_ptr().wrapping_add(self.column);
            // SAFETY: lanes in the masks are inside of the row; the others are not read.
            [0, 1].map(|half| unsafe { _mm512_maskz_loadu_ps(masks[half], from.wrapping_add(half * LANES)) })
        };
        let mut sums = [[_mm512_setzero_ps(); 2]; R];
        if self.first == 0 {
            sums[0] = load(self.dense);
        }
        for (j, row) in self.rows.iter().enumerate() {
            let row = load(row);
            // The matrix is symmetric: column `first..` of row `j` is row `j` of columns `first..`.
            let weights = self.square.as_ptr().wrapping_add(j * f + self.first);
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: `first + R` is at most `f`, and `square` has `f` rows of `f`.
                let weight = _mm512_set1_ps(unsafe { *weights.add(i) });
                sums[0] = _mm512_fmadd_ps(weight, row[0], sums[0]);
                sums[1] = _mm512_fmadd_ps(weight, row[1], sums[1]);
            }
        }
        for (sums, out) in sums.into_iter().zip(out) {
            let to = out.as_mut_ptr().wrapping_add(self.column);
            for half in 0..2 {
                let (to, sum) = (to.wrapping_add(half * LANES), sums[half]);
                if masks[half] != !0 {
                    // SAFETY: only lanes inside of the row are written.
                    unsafe { _mm512_mask_storeu_ps(to, masks[half], sum) };
                } else if self.stream {
                    // SAFETY: 16 floats inside of the row, aligned by the caller's promise; `fence` follows.
                    unsafe { _mm512_stream_ps(to, sum) };
                } else {
                    // SAFETY: 16 floats inside of the row.
                    unsafe { _mm512_storeu_ps(to, sum) };
                }
            }
        }
    }
}
