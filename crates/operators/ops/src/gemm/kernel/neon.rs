//! The register tile in NEON: 9 rows of three vectors are 27 accumulators, three registers hold B and one or two A.
//! Four rows of A come in one load if they are next to each other, and each multiply-add takes one lane of it.

#![expect(
    clippy::needless_range_loop,
    reason = "indices become constants, which keeps the sums in registers"
)]

use std::arch::aarch64::*;

use super::{Store, Strip, Window};
use crate::arch::Neon;

const LANES: usize = 4;

/// Computes one tile of at most 9 x 12.
///
/// # Safety
///
/// `a` holds `rows` and `b` holds `cols` lanes of `k` steps, the lanes of `b` next to each other; the tile is inside of
/// the window.
#[expect(clippy::too_many_arguments, reason = "a product has as many")]
#[target_feature(enable = "neon")]
pub(super) unsafe fn tile(
    _: Neon,
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
            match (rows, cols.div_ceil(LANES)) {
                $(
                    // SAFETY: the promises of this function, with the number of rows as a constant.
                    ($count, 3) => unsafe { sized::<$count, 3>(k, a, b, c, cols, store) },
                    // SAFETY: as above.
                    ($count, 2) => unsafe { sized::<$count, 2>(k, a, b, c, cols, store) },
                    // SAFETY: as above.
                    ($count, 1) => unsafe { sized::<$count, 1>(k, a, b, c, cols, store) },
                )*
                _ => unreachable!("the parent checked the size of the tile"),
            }
        };
    }
    choose!(1 2 3 4 5 6 7 8 9);
}

/// Computes a tile of constant size: `R` rows of `V` vectors, of which the last may be partly used.
/// One long function, because its sums stay in registers from the first step to the last store.
#[target_feature(enable = "neon")]
unsafe fn sized<const R: usize, const V: usize>(
    k: usize,
    a: Strip,
    b: Strip,
    c: &Window,
    cols: usize,
    store: &Store,
) {
    let last = cols + LANES - V * LANES;
    let mut sums = [[vdupq_n_f32(0.0); V]; R];
    let (mut a_at, mut b_at) = (a.data.as_ptr(), b.data.as_ptr());
    if a.lane_stride == 1 && last == LANES {
        for _ in 0..k {
            // SAFETY: the strips hold this step.
            unsafe {
                let mut b_now = [vdupq_n_f32(0.0); V];
                for vector in 0..V {
                    b_now[vector] = vld1q_f32(b_at.wrapping_add(vector * LANES));
                }
                for four in 0..R / LANES {
                    let a = vld1q_f32(a_at.wrapping_add(four * LANES));
                    for vector in 0..V {
                        let (b, row) = (b_now[vector], four * LANES);
                        sums[row][vector] = vfmaq_laneq_f32::<0>(sums[row][vector], b, a);
                        sums[row + 1][vector] = vfmaq_laneq_f32::<1>(sums[row + 1][vector], b, a);
                        sums[row + 2][vector] = vfmaq_laneq_f32::<2>(sums[row + 2][vector], b, a);
                        sums[row + 3][vector] = vfmaq_laneq_f32::<3>(sums[row + 3][vector], b, a);
                    }
                }
                for row in R / LANES * LANES..R {
                    let a = *a_at.wrapping_add(row);
                    for vector in 0..V {
                        sums[row][vector] = vfmaq_n_f32(sums[row][vector], b_now[vector], a);
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
                let mut b_now = [vdupq_n_f32(0.0); V];
                for vector in 0..V {
                    let count = if vector + 1 == V { last } else { LANES };
                    b_now[vector] = load_part(b_at.wrapping_add(vector * LANES), count);
                }
                for row in 0..R {
                    let a = *a_at.wrapping_add(row * a.lane_stride);
                    for vector in 0..V {
                        sums[row][vector] = vfmaq_n_f32(sums[row][vector], b_now[vector], a);
                    }
                }
            }
            a_at = a_at.wrapping_add(a.step_stride);
            b_at = b_at.wrapping_add(b.step_stride);
        }
    }
    // The sums leave the registers once, in a loop that unrolls: with a variable index anywhere, they would be in
    // memory in the loops above.
    let mut spilled = [[[0.0_f32; LANES]; V]; R];
    for row in 0..R {
        for vector in 0..V {
            // SAFETY: a vector has as many floats.
            unsafe { vst1q_f32(spilled[row][vector].as_mut_ptr(), sums[row][vector]) };
        }
    }
    if !c.has_rows() {
        for (row, sums) in spilled.iter().enumerate() {
            for (col, &sum) in sums.as_flattened().iter().enumerate().take(cols) {
                let place = c.place(row, col);
                // SAFETY: inside of the window, which only this thread holds.
                unsafe { place.write(store.value(sum, || place.read(), col)) };
            }
        }
        return;
    }
    let (alpha, beta) = (vdupq_n_f32(store.alpha), vdupq_n_f32(store.beta));
    let floor = vdupq_n_f32(if store.relu { 0.0 } else { f32::NEG_INFINITY });
    for vector in 0..V {
        let count = if vector + 1 == V { last } else { LANES };
        let bias = match store.bias {
            // SAFETY: the parent checked that there is a bias for each column.
            Some(bias) => unsafe { load_part(bias.as_ptr().wrapping_add(vector * LANES), count) },
            None => vdupq_n_f32(0.0),
        };
        for row in 0..R {
            let place = c.place(row, 0).wrapping_add(vector * LANES);
            // SAFETY: a vector has as many floats.
            let sum = unsafe { vld1q_f32(spilled[row][vector].as_ptr()) };
            let mut value = vfmaq_f32(bias, alpha, sum);
            if store.beta != 0.0 {
                // SAFETY: inside of the window; columns past its end are not read.
                let old = unsafe { load_part(place, count) };
                value = vfmaq_f32(value, beta, old);
            }
            // NaN is not below the floor, so it stays visible.
            value = vbslq_f32(vcgtq_f32(floor, value), floor, value);
            // SAFETY: inside of the window; columns past its end are not written.
            unsafe { store_part(place, count, value) };
        }
    }
}

/// Loads the first `count` of four lanes; the others are zero.
///
/// # Safety
///
/// As many floats can be read.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load_part(from: *const f32, count: usize) -> float32x4_t {
    let mut four = [0.0; LANES];
    // SAFETY: only the first `count` floats are read, by the caller's promise; the copy has four.
    unsafe {
        if count == LANES {
            return vld1q_f32(from);
        }
        for lane in 0..count.min(LANES) {
            four[lane] = *from.add(lane);
        }
        vld1q_f32(four.as_ptr())
    }
}

/// Stores the first `count` of four lanes.
///
/// # Safety
///
/// As many floats can be written.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn store_part(to: *mut f32, count: usize, value: float32x4_t) {
    // SAFETY: only the first `count` floats are written, by the caller's promise; the copy has four.
    unsafe {
        if count == LANES {
            return vst1q_f32(to, value);
        }
        let mut four = [0.0; LANES];
        vst1q_f32(four.as_mut_ptr(), value);
        to.copy_from_nonoverlapping(four.as_ptr(), count.min(LANES));
    }
}

/// Transposes squares of 4 x 4, and the remaining elements at the edges one by one.
///
/// # Safety
///
/// The conditions of [`transpose`](super::transpose) hold, with at least one lane and one step.
#[target_feature(enable = "neon")]
pub(super) unsafe fn transpose(
    _: Neon,
    source: &[f32],
    lane_stride: usize,
    lanes: usize,
    steps: usize,
    width: usize,
    out: &mut [f32],
) {
    let (whole_lanes, whole_steps) = (lanes - lanes % LANES, steps - steps % LANES);
    for step in (0..whole_steps).step_by(LANES) {
        for lane in (0..whole_lanes).step_by(LANES) {
            let from = |row: usize| source.as_ptr().wrapping_add((lane + row) * lane_stride + step);
            // SAFETY: four steps of four lanes are in the source.
            let rows =
                unsafe { [vld1q_f32(from(0)), vld1q_f32(from(1)), vld1q_f32(from(2)), vld1q_f32(from(3))] };
            for (row, value) in square(rows).into_iter().enumerate() {
                let to = out.as_mut_ptr().wrapping_add((step + row) * width + lane);
                // SAFETY: four lanes of this step are in the panel, since lanes are at most its width.
                unsafe { vst1q_f32(to, value) };
            }
        }
    }
    for (step, out) in out.chunks_exact_mut(width).take(steps).enumerate() {
        let first = if step < whole_steps { whole_lanes } else { 0 };
        for (lane, out) in out.iter_mut().enumerate().skip(first) {
            *out = if lane < lanes { source[lane * lane_stride + step] } else { 0.0 };
        }
    }
}

/// The transpose of 4 rows of 4.
#[inline]
#[target_feature(enable = "neon")]
fn square([a, b, c, d]: [float32x4_t; 4]) -> [float32x4_t; 4] {
    let wide = |value| vreinterpretq_f64_f32(value);
    let narrow = |value| vreinterpretq_f32_f64(value);
    let (ab_even, ab_odd) = (wide(vtrn1q_f32(a, b)), wide(vtrn2q_f32(a, b)));
    let (cd_even, cd_odd) = (wide(vtrn1q_f32(c, d)), wide(vtrn2q_f32(c, d)));
    [
        narrow(vtrn1q_f64(ab_even, cd_even)),
        narrow(vtrn1q_f64(ab_odd, cd_odd)),
        narrow(vtrn2q_f64(ab_even, cd_even)),
        narrow(vtrn2q_f64(ab_odd, cd_odd)),
    ]
}
