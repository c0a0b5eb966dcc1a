//! Sixteen lanes in an AVX-512 register.

use std::arch::x86_64::*;

use super::{LANES, Simd};
use crate::arch::{Avx512, Code};

/// One instruction.
macro_rules! whole {
    ($($name:ident($($operand:ident),+) = $instruction:ident;)+) => { $(
        #[inline(always)]
        fn $name(self $(, $operand: Self::V)+) -> Self::V {
            // SAFETY: an `Avx512` exists only where the processor has AVX-512.
            unsafe { $instruction($($operand),+) }
        }
    )+ };
}

/// A mask of the first `count` lanes.
#[inline(always)]
pub(crate) fn first_lanes(count: usize) -> __mmask16 {
    ((1_u32 << count) - 1) as __mmask16
}

impl Simd for Avx512 {
    type V = __m512;
    const LANES: usize = LANES;

    whole! {
        add(a, b) = _mm512_add_ps;
        sub(a, b) = _mm512_sub_ps;
        mul(a, b) = _mm512_mul_ps;
        div(a, b) = _mm512_div_ps;
        mul_add(a, b, sum) = _mm512_fmadd_ps;
        larger(a, b) = _mm512_max_ps;
        sqrt(a) = _mm512_sqrt_ps;
    }

    #[inline(always)]
    fn compile<C: Code>(self, code: C) -> C::Output {
        self.run(code)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        // SAFETY: an `Avx512` exists only where the processor has AVX-512.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn read(self, from: *const f32) -> Self::V {
        // SAFETY: sixteen readable floats; an `Avx512` exists only where the processor has AVX-512.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn read_first(self, from: *const f32, count: usize) -> Self::V {
        // SAFETY: the mask excludes the floats from `count` on; an `Avx512` exists only where the processor has
        // AVX-512.
        unsafe { _mm512_maskz_loadu_ps(first_lanes(count), from) }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32, value: Self::V) {
        // SAFETY: sixteen writable floats; an `Avx512` exists only where the processor has AVX-512.
        unsafe { _mm512_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn write_first(self, to: *mut f32, value: Self::V, count: usize) {
        // SAFETY: the mask excludes the floats from `count` on; an `Avx512` exists only where the processor has
        // AVX-512.
        unsafe { _mm512_mask_storeu_ps(to, first_lanes(count), value) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut f32, value: Self::V) {
        // SAFETY: sixteen writable floats at a multiple of 64 bytes; an `Avx512` exists only where the processor has
        // AVX-512.
        unsafe { _mm512_stream_ps(to, value) }
    }

    #[inline(always)]
    fn sum(self, a: Self::V) -> f32 {
        // SAFETY: an `Avx512` exists only where the processor has AVX-512.
        unsafe {
            let a = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a));
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)))
        }
    }
}
