//! Columns of a row as vectors of 16 floats.

use std::arch::x86_64::*;

use super::{BF16, Decode, F16, F32, INT8, scale_and_bias_f16c};
use crate::arch::Avx512;
use crate::embedding::Scale;
use crate::simd::avx512::first_lanes;

impl Decode for Avx512 {
    const VECTORS: usize = 16;
    const MASKED: bool = true;
    /// The 16 values of a number.
    type Int4 = __m512;

    #[inline(always)]
    fn int4(self, scales: __m512, biases: __m512) -> __m512 {
        // SAFETY: an `Avx512` exists only where the processor has AVX-512.
        unsafe {
            let count = _mm512_setr_ps(
                0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
            );
            _mm512_fmadd_ps(count, scales, biases)
        }
    }

    #[inline(always)]
    fn scale_and_bias(self, row: &[u8], kind: Scale) -> (f32, f32) {
        // SAFETY: an `Avx512` exists only where the processor has F16C.
        unsafe { scale_and_bias_f16c(row, kind) }
    }

    #[inline(always)]
    unsafe fn columns<const E: u8>(self, from: *const u8, int4: __m512) -> __m512 {
        // SAFETY: 16 columns can be read, by the caller's promise; no load needs alignment. An `Avx512` exists only
        // where the processor has AVX-512.
        unsafe {
            match E {
                F32 => _mm512_loadu_ps(from.cast()),
                F16 => _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())),
                BF16 => from_bf16(_mm256_loadu_si256(from.cast())),
                INT8 => from_int8(_mm_loadu_si128(from.cast())),
                _ => from_int4(from.cast::<u64>().read_unaligned(), int4),
            }
        }
    }

    #[inline(always)]
    unsafe fn first_columns<const E: u8>(self, from: *const u8, int4: __m512, count: usize) -> __m512 {
        let mask = first_lanes(count);
        // SAFETY: the masked columns can be read, by the caller's promise; the others are not touched. An `Avx512`
        // exists only where the processor has AVX-512.
        unsafe {
            match E {
                F32 => _mm512_maskz_loadu_ps(mask, from.cast()),
                F16 => _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from.cast())),
                BF16 => from_bf16(_mm256_maskz_loadu_epi16(mask, from.cast())),
                INT8 => from_int8(_mm_maskz_loadu_epi8(mask, from.cast())),
                _ => {
                    let bytes = _mm_maskz_loadu_epi8(first_lanes(count.div_ceil(2)), from.cast());
                    from_int4(_mm_cvtsi128_si64(bytes) as u64, int4)
                }
            }
        }
    }
}

/// # Safety
///
/// The processor has AVX-512.
#[inline(always)]
unsafe fn from_bf16(halves: __m256i) -> __m512 {
    // SAFETY: by the caller's promise.
    unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves))) }
}

/// # Safety
///
/// The processor has AVX-512.
#[inline(always)]
unsafe fn from_int8(bytes: __m128i) -> __m512 {
    // SAFETY: by the caller's promise.
    unsafe { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)) }
}

/// The values of 16 numbers of 4 bits each, the first in the lowest.
///
/// # Safety
///
/// The processor has AVX-512.
#[inline(always)]
unsafe fn from_int4(numbers: u64, values: __m512) -> __m512 {
    // SAFETY: by the caller's promise.
    unsafe {
        let low = _mm512_set1_epi32(numbers as i32);
        let both = _mm512_mask_set1_epi32(low, 0xff00, (numbers >> 32) as i32);
        let shifts = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
        // Only the lowest 4 bits of a lane choose: the bits above them need not be cleared.
        _mm512_permutexvar_ps(_mm512_srlv_epi32(both, shifts), values)
    }
}
