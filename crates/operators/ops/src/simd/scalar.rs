//! Sixteen lanes in portable code.

use std::array::from_fn;

use super::{LANES, Simd};
use crate::arch::Code;

/// Portable code.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

impl Simd for Scalar {
    type V = [f32; LANES];
    const LANES: usize = LANES;

    #[inline(always)]
    fn compile<C: Code>(self, code: C) -> C::Output {
        code.run()
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        [value; LANES]
    }

    #[inline(always)]
    unsafe fn read(self, from: *const f32) -> Self::V {
        // SAFETY: sixteen readable floats.
        unsafe { from.cast::<[f32; LANES]>().read() }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32, value: Self::V) {
        // SAFETY: sixteen writable floats.
        unsafe { to.cast::<[f32; LANES]>().write(value) }
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        from_fn(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        from_fn(|lane| a[lane] - b[lane])
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        from_fn(|lane| a[lane] * b[lane])
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        from_fn(|lane| a[lane] / b[lane])
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, sum: Self::V) -> Self::V {
        from_fn(|lane| a[lane] * b[lane] + sum[lane])
    }

    #[inline(always)]
    fn larger(self, a: Self::V, b: Self::V) -> Self::V {
        from_fn(|lane| if a[lane] > b[lane] { a[lane] } else { b[lane] })
    }

    #[inline(always)]
    fn sqrt(self, a: Self::V) -> Self::V {
        a.map(f32::sqrt)
    }

    #[inline(always)]
    fn sum(self, a: Self::V) -> f32 {
        let a: [f32; 8] = from_fn(|lane| a[lane] + a[lane + 8]);
        let a: [f32; 4] = from_fn(|lane| a[lane] + a[lane + 4]);
        (a[0] + a[2]) + (a[1] + a[3])
    }
}
