//! Sums across the lanes of a tile's accumulators.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::{float32x4_t, vpaddq_f32};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::triangle::Dots;
#[cfg(target_arch = "aarch64")]
use crate::arch::Neon;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512};
#[cfg(target_arch = "aarch64")]
use crate::simd::Simd;

#[cfg(target_arch = "x86_64")]
impl Dots<2> for Avx2 {
    type Four = __m128;

    #[inline(always)]
    fn dots(self, [[a, b, c, d], [e, f, g, h]]: [[__m256; 4]; 2]) -> [__m128; 2] {
        // SAFETY: an `Avx2` exists only where the processor has AVX2.
        unsafe {
            // Sums within 128-bit parts, which are then added.
            let first = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            let second = _mm256_hadd_ps(_mm256_hadd_ps(e, f), _mm256_hadd_ps(g, h));
            let low = _mm256_permute2f128_ps::<0x20>(first, second);
            let high = _mm256_permute2f128_ps::<0x31>(first, second);
            let sums = _mm256_add_ps(low, high);
            [_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums)]
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Dots<4> for Avx512 {
    type Four = __m128;

    #[inline(always)]
    fn dots(self, [a, b, c, d]: [[__m512; 4]; 4]) -> [__m128; 4] {
        // SAFETY: an `Avx512` exists only where the processor has AVX-512.
        unsafe {
            let (a, b, c, d) =
                (sum_of_quarters(a), sum_of_quarters(b), sum_of_quarters(c), sum_of_quarters(d));
            let (ab, cd) = (add_pairs(a, b), add_pairs(c, d));
            let sums = add_pairs(ab, cd);
            [
                _mm512_castps512_ps128(sums),
                _mm512_extractf32x4_ps::<1>(sums),
                _mm512_extractf32x4_ps::<2>(sums),
                _mm512_extractf32x4_ps::<3>(sums),
            ]
        }
    }
}

/// Sums within 128-bit parts: lane `j` of each part is the sum of that part of the `j`-th vector.
///
/// # Safety
///
/// The processor has AVX-512.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn sum_of_quarters([a, b, c, d]: [__m512; 4]) -> __m512 {
    // SAFETY: by the caller's promise.
    unsafe {
        let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
        let (low, high) = (_mm512_unpacklo_pd(ab, cd), _mm512_unpackhi_pd(ab, cd));
        _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high))
    }
}

/// Sums of neighbouring 128-bit parts, those of `a` first.
///
/// # Safety
///
/// The processor has AVX-512.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn add_pairs(a: __m512, b: __m512) -> __m512 {
    // SAFETY: by the caller's promise.
    unsafe { _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b)) }
}

#[cfg(target_arch = "aarch64")]
impl Dots<4> for Neon {
    type Four = float32x4_t;

    #[inline(always)]
    fn dots(self, sums: [[float32x4_t; 4]; 4]) -> [float32x4_t; 4] {
        let mut dots = [self.splat(0.0); 4];
        for (dots, [a, b, c, d]) in dots.iter_mut().zip(sums) {
            // SAFETY: a `Neon` exists only where the processor has NEON.
            *dots = unsafe { vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)) };
        }
        dots
    }
}
