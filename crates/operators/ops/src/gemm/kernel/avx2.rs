//! The register tile in AVX2: 6 rows of two vectors are 12 accumulators, two registers hold B and one or two A.

#![expect(
    clippy::needless_range_loop,
    reason = "indices become constants, which keeps the sums in registers"
)]

use std::arch::x86_64::*;

use super::{Store, Strip, Window};
use crate::arch::{Avx2, first_lanes};

const LANES: usize = 8;

/// Computes one tile of at most 6 x 16.
///
/// # Safety
///
/// `a` holds `rows` and `b` holds `cols` lanes of `k` steps, the lanes of `b` next to each other; the tile is inside of
/// the window.
#[target_feature(enable = "avx2,fma")]
#[expect(clippy::too_many_arguments, reason = "a product has as many")]
pub(super) unsafe fn tile(
    _: Avx2,
    k: usize,
    a: Strip,
    b: Strip,
    c: &Window,
    rows: usize,
    cols: usize,
    store: &Store,
) {
    macro_rules! choose {
        ($($count:literal)*) => {
            match (rows, cols > LANES) {
                $(
                    // SAFETY: the promises of this function, with the number of rows as a constant.
                    ($count, true) => unsafe { sized::<$count, 2>(k, a, b, c, cols, store) },
                    // SAFETY: as above.
                    ($count, false) => unsafe { sized::<$count, 1>(k, a, b, c, cols, store) },
                )*
                _ => unreachable!("the parent checked the size of the tile"),
            }
        };
    }
    choose!(1 2 3 4 5 6);
}

/// Computes a tile of constant size: `R` rows of `V` vectors, of which the last may be partly used.
/// One long function, because its sums stay in registers from the first step to the last store.
#[target_feature(enable = "avx2,fma")]
unsafe fn sized<const R: usize, const V: usize>(
    k: usize,
    a: Strip,
    b: Strip,
    c: &Window,
    cols: usize,
    store: &Store,
) {
    let last = first_lanes(cols + LANES - V * LANES);
    if c.has_rows() {
        for row in 0..R {
            for vector in 0..V {
                _mm_prefetch::<_MM_HINT_T0>(c.place(row, 0).wrapping_add(vector * LANES).cast());
            }
        }
    }
    let mut sums = [[_mm256_setzero_ps(); V]; R];
    let (mut a_at, mut b_at) = (a.data.as_ptr(), b.data.as_ptr());
    // With rows of A next to each other, the compiler folds the offsets into the addresses.
    if a.lane_stride == 1 && cols == V * LANES {
        for _ in 0..k {
            // SAFETY: the strips hold this step.
            unsafe {
                let mut b_now = [_mm256_setzero_ps(); V];
                for vector in 0..V {
                    b_now[vector] = _mm256_loadu_ps(b_at.wrapping_add(vector * LANES));
                }
                for row in 0..R {
                    let a = _mm256_set1_ps(*a_at.wrapping_add(row));
                    for vector in 0..V {
                        sums[row][vector] = _mm256_fmadd_ps(a, b_now[vector], sums[row][vector]);
                    }
                }
            }
            a_at = a_at.wrapping_add(a.step_stride);
            b_at = b_at.wrapping_add(b.step_stride);
        }
    } else {
        for _ in 0..k {
            // SAFETY: the strips hold this step; lanes of B past the last column are not read.
            unsafe {
                let mut b_now = [_mm256_setzero_ps(); V];
                for vector in 0..V {
                    let place = b_at.wrapping_add(vector * LANES);
                    b_now[vector] = if vector + 1 == V {
                        _mm256_maskload_ps(place, last)
                    } else {
                        _mm256_loadu_ps(place)
                    };
                }
                for row in 0..R {
                    let a = _mm256_set1_ps(*a_at.wrapping_add(row * a.lane_stride));
                    for vector in 0..V {
                        sums[row][vector] = _mm256_fmadd_ps(a, b_now[vector], sums[row][vector]);
                    }
                }
            }
            a_at = a_at.wrapping_add(a.step_stride);
            b_at = b_at.wrapping_add(b.step_stride);
        }
    }
    if !c.has_rows() {
        let mut spilled = [[[0.0_f32; LANES]; V]; R];
        for row in 0..R {
            for vector in 0..V {
                // SAFETY: a vector has as many floats.
                unsafe { _mm256_storeu_ps(spilled[row][vector].as_mut_ptr(), sums[row][vector]) };
            }
        }
        for (row, sums) in spilled.iter().enumerate() {
            for (col, &sum) in sums.as_flattened().iter().enumerate().take(cols) {
                let place = c.place(row, col);
                // SAFETY: inside of the window, which only this thread holds.
                unsafe { place.write(store.value(sum, || place.read(), col)) };
            }
        }
        return;
    }
    // No branches in these loops: only when they unroll do the sums stay in registers.
    let (alpha, beta) = (_mm256_set1_ps(store.alpha), _mm256_set1_ps(store.beta));
    let floor = _mm256_set1_ps(if store.relu { 0.0 } else { f32::NEG_INFINITY });
    for vector in 0..V {
        let mask = if vector + 1 == V { last } else { _mm256_set1_epi32(-1) };
        let bias = match store.bias {
            // SAFETY: the parent checked that there is a bias for each column.
            Some(bias) => unsafe { _mm256_maskload_ps(bias.as_ptr().wrapping_add(vector * LANES), mask) },
            None => _mm256_setzero_ps(),
        };
        if store.beta == 0.0 {
            for row in 0..R {
                let place = c.place(row, 0).wrapping_add(vector * LANES);
                // The second operand is the result for NaN, so that NaN stays visible.
                let value = _mm256_max_ps(floor, _mm256_fmadd_ps(alpha, sums[row][vector], bias));
                // SAFETY: inside of the window; the mask excludes columns past its end.
                unsafe { put(place, mask, value, cols >= (vector + 1) * LANES) };
            }
        } else {
            for row in 0..R {
                let place = c.place(row, 0).wrapping_add(vector * LANES);
                // SAFETY: as below.
                let old = unsafe { _mm256_maskload_ps(place, mask) };
                let value = _mm256_fmadd_ps(alpha, sums[row][vector], bias);
                let value = _mm256_max_ps(floor, _mm256_fmadd_ps(beta, old, value));
                // SAFETY: inside of the window; the mask excludes columns past its end.
                unsafe { put(place, mask, value, cols >= (vector + 1) * LANES) };
            }
        }
    }
}

/// Stores a whole vector where possible: masked stores are slow on some processors.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn put(place: *mut f32, mask: __m256i, value: __m256, whole: bool) {
    // SAFETY: the caller may write the lanes of the mask, which are all of them where `whole` is set.
    unsafe {
        if whole {
            _mm256_storeu_ps(place, value);
        } else {
            _mm256_maskstore_ps(place, mask, value);
        }
    }
}
