//! Sixteen lanes in portable code.

use std::array::from_fn;

use super::{LANES, Simd};

/// Portable code.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

impl Simd for Scalar {
    type V = [f32; LANES];

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        [value; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        *from
    }

    #[inline(always)]
    fn load_part(self, from: &[f32]) -> Self::V {
        let mut value = [0.0; LANES];
        value[..from.len()].copy_from_slice(from);
        value
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES], value: Self::V) {
        *to = value;
    }

    #[inline(always)]
    fn store_part(self, to: &mut [f32], value: Self::V) {
        to.copy_from_slice(&value[..to.len()]);
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
