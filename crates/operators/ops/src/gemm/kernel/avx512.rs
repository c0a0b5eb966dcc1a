//! The register tile in AVX-512: 14 rows of two vectors are 28 accumulators, two registers hold B and one A.

#![expect(
    clippy::needless_range_loop,
    reason = "indices become constants, which keeps the sums in registers"
)]

use std::arch::x86_64::*;

use super::{FEW_STEPS, Store, Strip, Window};
use crate::arch::Avx512;

const LANES: usize = 16;

/// One tile of at most 14 x 32.
///
/// # Safety
///
/// `a` holds `rows` and `b` holds `cols` lanes of `k` steps, the lanes of `b` next to each other; the tile lies in the
/// window.
#[target_feature(enable = "avx512f")]
#[expect(clippy::too_many_arguments, reason = "a product has as many")]
pub(super) unsafe fn tile(
    _: Avx512,
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
            match (rows, cols > LANES, store.ahead.is_some()) {
                $(
                    // SAFETY: the promises of this function, with the number of rows as a constant.
                    ($count, true, true) => unsafe { sized::<$count, 2, true>(k, a, b, c, cols, store) },
                    // SAFETY: as above.
                    ($count, true, false) => unsafe { sized::<$count, 2, false>(k, a, b, c, cols, store) },
                    // SAFETY: as above.
                    ($count, false, _) => unsafe { sized::<$count, 1, false>(k, a, b, c, cols, store) },
                )*
                _ => unreachable!("the parent checked the size of the tile"),
            }
        };
    }
    choose!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

/// The tile with its size known: `R` rows of `V` vectors, of which the last may be partly used.
/// One long function, because its sums stay in registers from the first step to the last store.
#[target_feature(enable = "avx512f")]
unsafe fn sized<const R: usize, const V: usize, const FETCH: bool>(
    k: usize,
    a: Strip,
    b: Strip,
    c: &Window,
    cols: usize,
    store: &Store,
) {
    let last: __mmask16 = 0xFFFF >> (V * LANES - cols);
    if c.has_rows() && k > FEW_STEPS {
        for row in 0..R {
            for vector in 0..V {
                _mm_prefetch::<_MM_HINT_T0>(c.place(row, 0).wrapping_add(vector * LANES).cast());
            }
        }
    }
    let mut sums = [[_mm512_setzero_ps(); V]; R];
    let (mut a_at, mut b_at) = (a.data.as_ptr(), b.data.as_ptr());
    let (mut ahead, ahead_step) = store.ahead.map_or((b_at, 0), |ahead| (ahead.start, ahead.step));
    // Where rows of A lie next to each other, the compiler folds the offsets into the addresses.
    if a.lane_stride == 1 && cols == V * LANES {
        for _ in 0..k {
            if FETCH {
                for vector in 0..V {
                    _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(vector * LANES).cast());
                }
                ahead = ahead.wrapping_add(ahead_step);
            }
            // SAFETY: the strips hold this step.
            unsafe {
                let mut b_now = [_mm512_setzero_ps(); V];
                for vector in 0..V {
                    b_now[vector] = _mm512_loadu_ps(b_at.wrapping_add(vector * LANES));
                }
                for row in 0..R {
                    let a = _mm512_set1_ps(*a_at.wrapping_add(row));
                    for vector in 0..V {
                        sums[row][vector] = _mm512_fmadd_ps(a, b_now[vector], sums[row][vector]);
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
                let mut b_now = [_mm512_setzero_ps(); V];
                for vector in 0..V {
                    let mask = if vector + 1 == V { last } else { 0xFFFF };
                    b_now[vector] = _mm512_maskz_loadu_ps(mask, b_at.wrapping_add(vector * LANES));
                }
                for row in 0..R {
                    let a = _mm512_set1_ps(*a_at.wrapping_add(row * a.lane_stride));
                    for vector in 0..V {
                        sums[row][vector] = _mm512_fmadd_ps(a, b_now[vector], sums[row][vector]);
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
                // SAFETY: as many floats as a vector has.
                unsafe { _mm512_storeu_ps(spilled[row][vector].as_mut_ptr(), sums[row][vector]) };
            }
        }
        for (row, sums) in spilled.iter().enumerate() {
            for (col, &sum) in sums.as_flattened().iter().enumerate().take(cols) {
                let place = c.place(row, col);
                // SAFETY: inside of the window, which this thread alone holds.
                unsafe { place.write(store.value(sum, || place.read(), col)) };
            }
        }
        return;
    }
    // No branches in these loops, and no loop over vectors: only when all unroll do the sums stay in registers. Masked
    // stores are slow on some processors, so tiles that are whole do without.
    let (alpha, beta) = (_mm512_set1_ps(store.alpha), _mm512_set1_ps(store.beta));
    let floor = _mm512_set1_ps(if store.relu { 0.0 } else { f32::NEG_INFINITY });
    // Of a short sum, scaling and bounding would be a good part of the work.
    let plain = store.alpha == 1.0 && store.beta == 0.0 && store.bias.is_none() && !store.relu;
    macro_rules! finish {
        ($vector:expr) => {{
            let vector: usize = $vector;
            let mask = if vector + 1 == V { last } else { 0xFFFF };
            let bias = match store.bias {
                // SAFETY: the parent checked that there is a bias for each column.
                Some(bias) => unsafe {
                    _mm512_maskz_loadu_ps(mask, bias.as_ptr().wrapping_add(vector * LANES))
                },
                None => _mm512_setzero_ps(),
            };
            // The second operand of a maximum is the result where one is not a number: it stays visible.
            if plain && cols == V * LANES {
                for row in 0..R {
                    let place = c.place(row, 0).wrapping_add(vector * LANES);
                    // SAFETY: inside of the window, which is as wide as the tile.
                    unsafe { _mm512_storeu_ps(place, sums[row][vector]) };
                }
            } else if store.beta != 0.0 {
                for row in 0..R {
                    let place = c.place(row, 0).wrapping_add(vector * LANES);
                    // SAFETY: inside of the window; the mask leaves out columns past its end.
                    let old = unsafe { _mm512_maskz_loadu_ps(mask, place) };
                    let value = _mm512_fmadd_ps(alpha, sums[row][vector], bias);
                    let value = _mm512_max_ps(floor, _mm512_fmadd_ps(beta, old, value));
                    // SAFETY: as above.
                    unsafe { _mm512_mask_storeu_ps(place, mask, value) };
                }
            } else if cols == V * LANES {
                for row in 0..R {
                    let place = c.place(row, 0).wrapping_add(vector * LANES);
                    let value = _mm512_max_ps(floor, _mm512_fmadd_ps(alpha, sums[row][vector], bias));
                    // SAFETY: inside of the window, which is as wide as the tile.
                    unsafe { _mm512_storeu_ps(place, value) };
                }
            } else {
                for row in 0..R {
                    let place = c.place(row, 0).wrapping_add(vector * LANES);
                    let value = _mm512_max_ps(floor, _mm512_fmadd_ps(alpha, sums[row][vector], bias));
                    // SAFETY: inside of the window; the mask leaves out columns past its end.
                    unsafe { _mm512_mask_storeu_ps(place, mask, value) };
                }
            }
        }};
    }
    finish!(0);
    if V == 2 {
        finish!(V - 1);
    }
}
