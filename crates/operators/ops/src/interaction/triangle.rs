//! The dot products of all pairs of one sample, with vectors.
//!
//! The triangle is divided into tiles of `R x 4` pairs: 4 x 4 with AVX-512 and NEON (16 accumulators), 2 x 4 with AVX2
//! (8 accumulators).

use std::array::from_fn;
use std::mem::{take, transmute_copy};

use super::Interaction;
use crate::arch::Code;
use crate::simd::Simd;

/// Vectors for tiles of `R x 4` pairs.
pub(super) trait Dots<const R: usize>: Simd {
    /// A vector of four floats.
    type Four: Copy;

    /// Adds up the lanes of each accumulator.
    fn dots(self, sums: [[Self::V; 4]; R]) -> [Self::Four; R];
}

/// Computes the dot products of all pairs, in order.
pub(super) fn triangle<S: Dots<R>, const R: usize>(
    s: S,
    of: &Interaction,
    rows: &[&[f32]],
    pairs: &mut [f32],
) {
    assert!(
        rows.len() == of.features && rows.iter().all(|row| row.len() == of.dim) && pairs.len() == of.pairs()
    );
    s.compile(Triangle { s, of, rows, pairs });
}

/// A sample. Made only by [`triangle`]: there are `F` rows of `D` floats, and `P` pairs.
struct Triangle<'a, S, const R: usize> {
    s: S,
    of: &'a Interaction,
    rows: &'a [&'a [f32]],
    pairs: &'a mut [f32],
}

impl<S: Dots<R>, const R: usize> Code for Triangle<'_, S, R> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Triangle { s, of, rows, mut pairs } = self;
        let dim = of.dim;
        for i in (0..rows.len()).step_by(R) {
            let left = some(rows, i);
            let mut targets: [&mut [f32]; R] = from_fn(|at| {
                let len = if i + at < rows.len() { of.row_len(i + at) } else { 0 };
                pairs.split_off_mut(..len).unwrap_or_default()
            });
            for j in (0..i + R).step_by(4) {
                // SAFETY: each pointer is to `D` floats, as `triangle` checked.
                let sums = s.dots(unsafe { tile(s, left, some(rows, j), dim) });
                for (target, &four) in targets.iter_mut().zip(&sums) {
                    store(four, target);
                }
            }
        }
    }
}

/// Stores four sums, or as many as fit, at the start of the target, which then begins after them.
#[inline(always)]
fn store<F: Copy>(four: F, target: &mut &mut [f32]) {
    const { assert!(size_of::<F>() == size_of::<[f32; 4]>()) };
    if let Some(to) = target.split_off_mut(..4) {
        // SAFETY: four floats, which need not be aligned as a vector.
        unsafe { to.as_mut_ptr().cast::<F>().write_unaligned(four) };
    } else {
        let rest = take(target);
        // SAFETY: a vector of four floats has the size and the bytes of an array of them.
        let four: [f32; 4] = unsafe { transmute_copy(&four) };
        // One by one, since a copy of unknown length would be a call.
        for (at, sum) in four.into_iter().enumerate() {
            if let Some(to) = rest.get_mut(at) {
                *to = sum;
            }
        }
    }
}

/// Addresses of the rows from `first` on. Rows past the last repeat it; their sums are not stored.
#[inline(always)]
fn some<const N: usize>(rows: &[&[f32]], first: usize) -> [*const f32; N] {
    from_fn(|at| rows[(first + at).min(rows.len() - 1)].as_ptr())
}

/// The products of vectors with four others, summed lane by lane: `[i][j]` is that of `left[i]` and `right[j]`.
///
/// # Safety
///
/// Each pointer is to `dim` floats.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize>(
    s: S,
    left: [*const f32; R],
    right: [*const f32; 4],
    dim: usize,
) -> [[S::V; 4]; R] {
    let mut sums = [[s.splat(0.0); 4]; R];
    let whole = dim - dim % S::LANES;
    // SAFETY: `S::LANES` floats from each place before `whole` on, and the rest from `whole` on, are below `dim`.
    unsafe {
        for at in (0..whole).step_by(S::LANES) {
            step::<S, R, true>(s, &mut sums, left, right, at, S::LANES);
        }
        if whole < dim {
            step::<S, R, false>(s, &mut sums, left, right, whole, dim - whole);
        }
    }
    sums
}

/// Adds the products of `count` columns from `at` on; with `WHOLE`, as many as lanes.
///
/// # Safety
///
/// Each pointer is to at least `at + count` floats.
#[inline(always)]
unsafe fn step<S: Simd, const R: usize, const WHOLE: bool>(
    s: S,
    sums: &mut [[S::V; 4]; R],
    left: [*const f32; R],
    right: [*const f32; 4],
    at: usize,
    count: usize,
) {
    let mut values = [s.splat(0.0); R];
    // SAFETY: `count` floats from `at` on can be read, by the caller's promise.
    unsafe {
        for (value, left) in values.iter_mut().zip(left) {
            *value = if WHOLE { s.read(left.add(at)) } else { s.read_first(left.add(at), count) };
        }
        for (j, right) in right.into_iter().enumerate() {
            let right = if WHOLE { s.read(right.add(at)) } else { s.read_first(right.add(at), count) };
            for i in 0..R {
                sums[i][j] = s.mul_add(values[i], right, sums[i][j]);
            }
        }
    }
}
