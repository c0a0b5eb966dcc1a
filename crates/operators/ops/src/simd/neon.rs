//! Four lanes in a NEON register.

use std::arch::aarch64::*;

use super::Simd;
use crate::arch::{Code, Neon};

/// One instruction.
macro_rules! whole {
    ($($name:ident($($operand:ident),+) = $instruction:ident;)+) => { $(
        #[inline(always)]
        fn $name(self $(, $operand: Self::V)+) -> Self::V {
            // SAFETY: a `Neon` exists only where the processor has NEON.
            unsafe { $instruction($($operand),+) }
        }
    )+ };
}

impl Simd for Neon {
    type V = float32x4_t;
    const LANES: usize = 4;

    whole! {
        add(a, b) = vaddq_f32;
        sub(a, b) = vsubq_f32;
        mul(a, b) = vmulq_f32;
        div(a, b) = vdivq_f32;
        sqrt(a) = vsqrtq_f32;
    }

    /// Every function is compiled for NEON.
    #[inline(always)]
    fn compile<C: Code>(self, code: C) -> C::Output {
        code.run()
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        // SAFETY: a `Neon` exists only where the processor has NEON.
        unsafe { vdupq_n_f32(value) }
    }

    #[inline(always)]
    unsafe fn read(self, from: *const f32) -> Self::V {
        // SAFETY: four readable floats; a `Neon` exists only where the processor has NEON.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32, value: Self::V) {
        // SAFETY: four writable floats; a `Neon` exists only where the processor has NEON.
        unsafe { vst1q_f32(to, value) }
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, sum: Self::V) -> Self::V {
        // SAFETY: a `Neon` exists only where the processor has NEON.
        unsafe { vfmaq_f32(sum, a, b) }
    }

    #[inline(always)]
    fn larger(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a `Neon` exists only where the processor has NEON.
        unsafe { vbslq_f32(vcgtq_f32(a, b), a, b) }
    }

    #[inline(always)]
    fn sum(self, a: Self::V) -> f32 {
        // SAFETY: a `Neon` exists only where the processor has NEON.
        unsafe {
            let two = vadd_f32(vget_low_f32(a), vget_high_f32(a));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }
}
