//! Sixteen lanes in four NEON registers.

use std::arch::aarch64::*;

use super::{LANES, Simd};
use crate::arch::Neon;

/// One instruction on each quarter.
macro_rules! quarters {
    ($name:ident, $instruction:ident, $a:ident, $b:ident) => {
        #[inline(always)]
        fn $name(self, $a: Self::V, $b: Self::V) -> Self::V {
            // SAFETY: a `Neon` exists only where the processor has NEON.
            unsafe {
                [
                    $instruction($a[0], $b[0]),
                    $instruction($a[1], $b[1]),
                    $instruction($a[2], $b[2]),
                    $instruction($a[3], $b[3]),
                ]
            }
        }
    };
}

impl Simd for Neon {
    type V = [float32x4_t; 4];

    quarters!(add, vaddq_f32, a, b);
    quarters!(sub, vsubq_f32, a, b);
    quarters!(mul, vmulq_f32, a, b);
    quarters!(div, vdivq_f32, a, b);

    #[inline(always)]
    fn sqrt(self, a: Self::V) -> Self::V {
        // SAFETY: a `Neon` exists only where the processor has NEON.
        unsafe { [vsqrtq_f32(a[0]), vsqrtq_f32(a[1]), vsqrtq_f32(a[2]), vsqrtq_f32(a[3])] }
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        // SAFETY: a `Neon` exists only where the processor has NEON.
        [unsafe { vdupq_n_f32(value) }; 4]
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        let from = from.as_ptr();
        // SAFETY: sixteen readable floats; a `Neon` exists only where the processor has NEON.
        unsafe { [vld1q_f32(from), vld1q_f32(from.add(4)), vld1q_f32(from.add(8)), vld1q_f32(from.add(12))] }
    }

    #[inline(always)]
    fn load_part(self, from: &[f32]) -> Self::V {
        let mut whole = [0.0; LANES];
        whole[..from.len()].copy_from_slice(from);
        self.load(&whole)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES], value: Self::V) {
        let to = to.as_mut_ptr();
        // SAFETY: sixteen writable floats; a `Neon` exists only where the processor has NEON.
        unsafe {
            vst1q_f32(to, value[0]);
            vst1q_f32(to.add(4), value[1]);
            vst1q_f32(to.add(8), value[2]);
            vst1q_f32(to.add(12), value[3]);
        }
    }

    #[inline(always)]
    fn store_part(self, to: &mut [f32], value: Self::V) {
        let mut whole = [0.0; LANES];
        self.store(&mut whole, value);
        to.copy_from_slice(&whole[..to.len()]);
    }

    #[inline(always)]
    fn sum(self, a: Self::V) -> f32 {
        // SAFETY: a `Neon` exists only where the processor has NEON.
        unsafe {
            let four = vaddq_f32(vaddq_f32(a[0], a[2]), vaddq_f32(a[1], a[3]));
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }
}
