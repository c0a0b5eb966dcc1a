//! Eight lanes in an AVX2 register.

use std::arch::x86_64::*;

use super::Simd;
use crate::arch::{Avx2, Code, first_lanes};

/// One instruction.
macro_rules! whole {
    ($($name:ident($($operand:ident),+) = $instruction:ident;)+) => { $(
        #[inline(always)]
        fn $name(self $(, $operand: Self::V)+) -> Self::V {
            // SAFETY: an `Avx2` exists only where the processor has AVX2 and FMA.
            unsafe { $instruction($($operand),+) }
        }
    )+ };
}

impl Simd for Avx2 {
    type V = __m256;
    const LANES: usize = 8;

    whole! {
        add(a, b) = _mm256_add_ps;
        sub(a, b) = _mm256_sub_ps;
        mul(a, b) = _mm256_mul_ps;
        div(a, b) = _mm256_div_ps;
        mul_add(a, b, sum) = _mm256_fmadd_ps;
        larger(a, b) = _mm256_max_ps;
        sqrt(a) = _mm256_sqrt_ps;
    }

    #[inline(always)]
    fn compile<C: Code>(self, code: C) -> C::Output {
        self.run(code)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        // SAFETY: an `Avx2` exists only where the processor has AVX2.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn read(self, from: *const f32) -> Self::V {
        // SAFETY: eight readable floats; an `Avx2` exists only where the processor has AVX2.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn read_first(self, from: *const f32, count: usize) -> Self::V {
        // SAFETY: the mask excludes the floats from `count` on; an `Avx2` exists only where the processor has AVX2.
        unsafe { _mm256_maskload_ps(from, first_lanes(count)) }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32, value: Self::V) {
        // SAFETY: eight writable floats; an `Avx2` exists only where the processor has AVX2.
        unsafe { _mm256_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn write_first(self, to: *mut f32, value: Self::V, count: usize) {
        // SAFETY: the mask excludes the floats from `count` on; an `Avx2` exists only where the processor has AVX2.
        unsafe { _mm256_maskstore_ps(to, first_lanes(count), value) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut f32, value: Self::V) {
        // SAFETY: eight writable floats at a multiple of 32 bytes; an `Avx2` exists only where the processor has AVX2.
        unsafe { _mm256_stream_ps(to, value) }
    }

    #[inline(always)]
    fn sum(self, a: Self::V) -> f32 {
        // SAFETY: an `Avx2` exists only where the processor has AVX2.
        unsafe {
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)))
        }
    }
}
