//! Register tiles in AVX-512: at most 28 accumulators; the other registers hold B and one element of A.

#![expect(
    clippy::needless_range_loop,
    reason = "indices become constants, which keeps the sums in registers"
)]

use std::arch::x86_64::*;

use super::{PrefetchRegions, Store, Sweep};
use crate::arch::Avx512;

const LANES: usize = 16;

/// Number of steps between two prefetches.
const GROUP: usize = 4;

/// Number of vectors from which a tile is wide. Wide tiles are for short sums, whose time is that of writing C.
const WIDE: usize = 3;

/// Computes tiles of at most 28 x 16, 14 x 32 or 6 x 64.
///
/// # Safety
///
/// For each tile, `a` holds its rows and `b` its columns for `k` steps, the lanes of `b` next to each other; all tiles
/// are inside of the window, and there is a bias for each column or none.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn sweep(_: Avx512, sweep: &Sweep, store: &Store, ahead: &mut PrefetchRegions) {
    let masked = !sweep.cols.is_multiple_of(LANES);
    let by_row = sweep.a.lane_stride != 1;
    macro_rules! choose {
        ($vectors:literal $by_row:literal $mask:literal: $($count:literal)*) => {
            match sweep.rows {
                $(
                    // SAFETY: the promises of this function, with the size of the tile as constants.
                    $count => unsafe { sized::<$count, $vectors, $by_row, $mask>(sweep, store, ahead) },
                )*
                _ => unreachable!("the size of the tile was checked"),
            }
        };
    }
    match (sweep.cols.div_ceil(LANES), by_row, masked) {
        (1, false, false) => {
            choose!(1 false false: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28)
        }
        (1, false, true) => {
            choose!(1 false true: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28)
        }
        (1, true, _) => {
            choose!(1 true true: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28)
        }
        (2, false, false) => choose!(2 false false: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        (2, false, true) => choose!(2 false true: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        (2, true, false) => choose!(2 true false: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        (2, true, true) => choose!(2 true true: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        (3, _, _) => choose!(3 true true: 1 2 3 4 5 6),
        (_, _, false) => choose!(4 true false: 1 2 3 4 5 6),
        (_, _, true) => choose!(4 true true: 1 2 3 4 5 6),
    }
}

/// Computes tiles of `R` rows of `V` vectors, the last of them partly used if `MASK`. Rows of A may be anywhere if
/// `BY_ROW`, otherwise they are next to each other.
///
/// One long function without calls, because the sums of a tile stay in registers from the first step to the last store.
#[target_feature(enable = "avx512f")]
unsafe fn sized<const R: usize, const V: usize, const BY_ROW: bool, const MASK: bool>(
    sweep: &Sweep,
    store: &Store,
    ahead: &mut PrefetchRegions,
) {
    let last: __mmask16 = 0xFFFF >> (V * LANES - sweep.cols);
    let (k, a_lane, a_step, b_step) =
        (sweep.k, sweep.a.lane_stride, sweep.a.step_stride, sweep.b.step_stride);
    let c_stride = sweep.c.row_stride();
    let groups = k / GROUP;
    for at in 0..sweep.count {
        let mut a_at = sweep.a.data.as_ptr().wrapping_add(at * sweep.a_next);
        let mut b_at = sweep.b.data.as_ptr().wrapping_add(at * sweep.b_next);
        let c = sweep.place(&sweep.c, at);
        let mut sums = [[_mm512_setzero_ps(); V]; R];
        if let Some(before) = &sweep.sums {
            let (first, stride) = (sweep.place(before, at), before.row_stride());
            for row in 0..R {
                for vector in 0..V {
                    let mask = if vector + 1 == V { last } else { 0xFFFF };
                    let place = first.wrapping_add(row * stride + vector * LANES);
                    // SAFETY: inside of the window; the mask excludes columns past its end.
                    sums[row][vector] = unsafe { _mm512_maskz_loadu_ps(mask, place) };
                }
            }
        }
        // One pointer for three rows: the other two are one and two strides away, which addressing modes allow.
        let mut a_rows = [a_at; 10];
        for three in 1..R.div_ceil(3) {
            a_rows[three] = a_at.wrapping_add(3 * three * a_lane);
        }
        macro_rules! rows {
            ($($row:literal)*, $b_now:ident) => {
                $(
                    if $row < R {
                        let place = if BY_ROW {
                            a_rows[$row / 3].wrapping_add($row % 3 * a_lane)
                        } else {
                            a_at.wrapping_add($row)
                        };
                        // SAFETY: the strip holds this step.
                        let a_now = _mm512_set1_ps(unsafe { *place });
                        for vector in 0..V {
                            sums[$row][vector] = _mm512_fmadd_ps(a_now, $b_now[vector], sums[$row][vector]);
                        }
                    }
                )*
            };
        }
        macro_rules! step {
            () => {
                let mut b_now = [_mm512_setzero_ps(); V];
                for vector in 0..V {
                    let place = b_at.wrapping_add(vector * LANES);
                    // SAFETY: the strip holds this step; the mask excludes lanes past the last column.
                    b_now[vector] = unsafe {
                        if MASK && vector + 1 == V {
                            _mm512_maskz_loadu_ps(last, place)
                        } else {
                            _mm512_loadu_ps(place)
                        }
                    };
                }
                // Unrolled, so that row numbers are constants in a long loop too.
                rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27, b_now);
                for three in 0..R.div_ceil(3) {
                    a_rows[three] = a_rows[three].wrapping_add(a_step);
                }
                a_at = a_at.wrapping_add(a_step);
                b_at = b_at.wrapping_add(b_step);
            };
        }
        // One row of C at a time: of this tile, in time for its last step, or of the next tile where there are few
        // steps.
        let mut c_row = if V < WIDE { c } else { c.wrapping_add(sweep.cols_next()) };
        let mut left = groups;
        while left > 0 {
            left -= 1;
            for vector in 0..V {
                _mm_prefetch::<_MM_HINT_T0>(c_row.wrapping_add(vector * LANES).cast());
            }
            if V < WIDE {
                c_row = if left < R { c_row.wrapping_add(c_stride) } else { c_row };
                let line = ahead.next();
                _mm_prefetch::<_MM_HINT_T1>(line.cast());
                _mm_prefetch::<_MM_HINT_T1>(line.wrapping_add(LANES).cast());
            } else {
                let second = c_row.wrapping_add(c_stride);
                for vector in 0..V {
                    _mm_prefetch::<_MM_HINT_T0>(second.wrapping_add(vector * LANES).cast());
                }
                c_row = if left + R / 2 > groups { second.wrapping_add(c_stride) } else { c_row };
            }
            step!();
            step!();
            step!();
            step!();
        }
        for _ in 0..k % GROUP {
            step!();
        }
        if !sweep.c.has_rows() {
            let mut spilled = [[[0.0_f32; LANES]; V]; R];
            for row in 0..R {
                for vector in 0..V {
                    // SAFETY: a vector has as many floats.
                    unsafe { _mm512_storeu_ps(spilled[row][vector].as_mut_ptr(), sums[row][vector]) };
                }
            }
            // SAFETY: `c` is the address of this tile in the window.
            unsafe { scatter(sweep, at, c, spilled.as_flattened().as_flattened(), V * LANES, store) };
            continue;
        }
        // No branches in these loops, and no loop over vectors: the sums stay in registers only if all loops unroll.
        // Masked stores are slow on some processors, so whole tiles do without.
        let (alpha, beta) = (_mm512_set1_ps(store.alpha), _mm512_set1_ps(store.beta));
        let floor = _mm512_set1_ps(if store.relu { 0.0 } else { f32::NEG_INFINITY });
        macro_rules! put {
            ($row:expr, $vector:expr, $value:expr) => {
                let place = c.wrapping_add($row * c_stride + $vector * LANES);
                // SAFETY: inside of the window; the mask excludes columns past its end.
                unsafe {
                    if MASK && $vector + 1 == V {
                        _mm512_mask_storeu_ps(place, last, $value)
                    } else {
                        _mm512_storeu_ps(place, $value)
                    }
                }
            };
        }
        if store.alpha == 1.0 && store.beta == 0.0 && store.bias.is_none() && !store.relu {
            // For a short sum, scaling and clamping would be a large part of the work.
            for row in 0..R {
                for vector in 0..V {
                    put!(row, vector, sums[row][vector]);
                }
            }
            continue;
        }
        let mut biases = [_mm512_setzero_ps(); V];
        if let Some(bias) = store.bias {
            let bias = bias.as_ptr().wrapping_add(at * sweep.cols_next());
            for vector in 0..V {
                let mask = if vector + 1 == V { last } else { 0xFFFF };
                // SAFETY: there is a bias for each column.
                biases[vector] = unsafe { _mm512_maskz_loadu_ps(mask, bias.wrapping_add(vector * LANES)) };
            }
        }
        // The second operand of a maximum is the result for NaN, so that NaN stays visible.
        if store.beta == 0.0 {
            for row in 0..R {
                for vector in 0..V {
                    let value = _mm512_fmadd_ps(alpha, sums[row][vector], biases[vector]);
                    put!(row, vector, _mm512_max_ps(floor, value));
                }
            }
        } else {
            for row in 0..R {
                for vector in 0..V {
                    let mask = if vector + 1 == V { last } else { 0xFFFF };
                    let place = c.wrapping_add(row * c_stride + vector * LANES);
                    // SAFETY: inside of the window; the mask excludes columns past its end.
                    let old = unsafe { _mm512_maskz_loadu_ps(mask, place) };
                    let value = _mm512_fmadd_ps(alpha, sums[row][vector], biases[vector]);
                    put!(row, vector, _mm512_max_ps(floor, _mm512_fmadd_ps(beta, old, value)));
                }
            }
        }
    }
}

/// Stores a tile whose columns are not next to each other: `sums` has rows of `width`.
///
/// # Safety
///
/// `c` is the address at which tile `at` of the sweep begins.
#[inline(never)]
unsafe fn scatter(sweep: &Sweep, at: usize, c: *mut f32, sums: &[f32], width: usize, store: &Store) {
    let bias = store.bias.map(|bias| &bias[at * sweep.cols_next()..]);
    let store = Store { bias, ..*store };
    for (row, sums) in sums.chunks_exact(width).enumerate() {
        for (col, &sum) in sums.iter().enumerate().take(sweep.cols) {
            let place = c.wrapping_add(row * sweep.c.row_stride() + col * sweep.c.col_stride());
            // SAFETY: inside of the window, which only this thread holds.
            unsafe { place.write(store.value(sum, || place.read(), col)) };
        }
    }
}
