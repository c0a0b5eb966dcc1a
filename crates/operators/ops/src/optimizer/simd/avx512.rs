//! Sixteen lanes in one AVX-512 register.

use std::arch::x86_64::*;

use super::{Kernel, LANES, Simd};
use crate::arch::Avx512;

/// Runs a kernel with AVX-512.
#[inline]
pub(super) fn run<K: Kernel>(token: Avx512, kernel: K) {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    fn inner<K: Kernel>(token: Avx512, kernel: K) {
        kernel.run(token);
    }
    // SAFETY: the token proves that the processor has AVX-512.
    unsafe { inner(token, kernel) }
}

/// One instruction.
macro_rules! whole {
    ($name:ident, $instruction:ident $(, $operand:ident)*) => {
        #[inline(always)]
        fn $name(self $(, $operand: Self::V)*) -> Self::V {
            // SAFETY: an `Avx512` exists only where the processor has AVX-512.
            unsafe { $instruction($($operand),*) }
        }
    };
}

/// A mask of the first lanes.
#[inline(always)]
fn first(lanes: usize) -> __mmask16 {
    ((1u32 << lanes.min(LANES)) - 1) as __mmask16
}

impl Simd for Avx512 {
    type V = __m512;

    whole!(add, _mm512_add_ps, a, b);
    whole!(sub, _mm512_sub_ps, a, b);
    whole!(mul, _mm512_mul_ps, a, b);
    whole!(div, _mm512_div_ps, a, b);
    whole!(sqrt, _mm512_sqrt_ps, a);

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        // SAFETY: an `Avx512` exists only where the processor has AVX-512.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        // SAFETY: sixteen readable floats; an `Avx512` exists only where the processor has AVX-512.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn load_part(self, from: &[f32]) -> Self::V {
        // SAFETY: the mask excludes the lanes past the end; an `Avx512` exists only where the processor has AVX-512.
        unsafe { _mm512_maskz_loadu_ps(first(from.len()), from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES], value: Self::V) {
        // SAFETY: sixteen writable floats; an `Avx512` exists only where the processor has AVX-512.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) }
    }

    #[inline(always)]
    fn store_part(self, to: &mut [f32], value: Self::V) {
        // SAFETY: the mask excludes the lanes past the end; an `Avx512` exists only where the processor has AVX-512.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), value) }
    }

    #[inline(always)]
    fn sum(self, a: Self::V) -> f32 {
        // SAFETY: an `Avx512` exists only where the processor has AVX-512.
        unsafe {
            let a = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a));
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps::<1>(a, a)))
        }
    }
}
