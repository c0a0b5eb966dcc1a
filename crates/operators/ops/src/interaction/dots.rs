//! Sums across the lanes of a tile's accumulators.

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
    #[inline(always)]
    fn dots(self, [[a, b, c, d], [e, f, g, h]]: [[__m256; 4]; 2]) -> [[f32; 4]; 2] {
        // SAFETY: an `Avx2` exists only where the processor has AVX2; the array has eight floats.
        unsafe {
            // Sums within 128-bit parts, which are then added.
            let first = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            let second = _mm256_hadd_ps(_mm256_hadd_ps(e, f), _mm256_hadd_ps(g, h));
            let low = _mm256_permute2f128_ps::<0x20>(first, second);
            let high = _mm256_permute2f128_ps::<0x31>(first, second);
            let mut sums = [[0.0; 4]; 2];
            _mm256_storeu_ps(sums.as_mut_ptr().cast(), _mm256_add_ps(low, high));
            sums
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Dots<4> for Avx512 {
    #[inline(always)]
    fn dots(self, [a, b, c, d]: [[__m512; 4]; 4]) -> [[f32; 4]; 4] {
        // SAFETY: an `Avx512` exists only where the processor has AVX-512; the array has sixteen floats.
        unsafe {
            let (a, b, c, d) =
                (sum_of_quarters(a), sum_of_quarters(b), sum_of_quarters(c), sum_of_quarters(d));
            let (ab, cd) = (add_pairs(a, b), add_pairs(c, d));
            let mut sums = [[0.0; 4]; 4];
            _mm512_storeu_ps(sums.as_mut_ptr().cast(), add_pairs(ab, cd));
            sums
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
    #[inline(always)]
    fn dots(self, sums: [[Self::V; 4]; 4]) -> [[f32; 4]; 4] {
        use std::arch::aarch64::vpaddq_f32;
        let mut dots = [[0.0; 4]; 4];
        for (dots, [a, b, c, d]) in dots.iter_mut().zip(sums) {
            // SAFETY: a `Neon` exists only where the processor has NEON; four floats.
            unsafe { self.write(dots.as_mut_ptr(), vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d))) };
        }
        dots
    }
}
