//! Sixteen lanes in two AVX2 registers.

use std::arch::x86_64::*;

use super::{Kernel, LANES, Simd};
use crate::arch::Avx2;

/// Runs a kernel with AVX2.
#[inline]
pub(super) fn run<K: Kernel>(token: Avx2, kernel: K) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn inner<K: Kernel>(token: Avx2, kernel: K) {
        kernel.run(token);
    }
    // SAFETY: the token proves that the processor has AVX2, FMA and F16C.
    unsafe { inner(token, kernel) }
}

/// One instruction on each half.
macro_rules! halves {
    ($name:ident, $instruction:ident $(, $operand:ident)*) => {
        #[inline(always)]
        fn $name(self $(, $operand: Self::V)*) -> Self::V {
            // SAFETY: an `Avx2` exists only where the processor has AVX2.
            unsafe { ($instruction($($operand.0),*), $instruction($($operand.1),*)) }
        }
    };
}

impl Simd for Avx2 {
    type V = (__m256, __m256);

    halves!(add, _mm256_add_ps, a, b);
    halves!(sub, _mm256_sub_ps, a, b);
    halves!(mul, _mm256_mul_ps, a, b);
    halves!(div, _mm256_div_ps, a, b);
    halves!(sqrt, _mm256_sqrt_ps, a);

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        // SAFETY: an `Avx2` exists only where the processor has AVX2.
        unsafe { (_mm256_set1_ps(value), _mm256_set1_ps(value)) }
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        let from = from.as_ptr();
        // SAFETY: sixteen readable floats; an `Avx2` exists only where the processor has AVX2.
        unsafe { (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
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
        // SAFETY: sixteen writable floats; an `Avx2` exists only where the processor has AVX2.
        unsafe {
            _mm256_storeu_ps(to, value.0);
            _mm256_storeu_ps(to.add(8), value.1);
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
        // SAFETY: an `Avx2` exists only where the processor has AVX2.
        unsafe {
            let a = _mm256_add_ps(a.0, a.1);
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps::<1>(a, a)))
        }
    }
}
