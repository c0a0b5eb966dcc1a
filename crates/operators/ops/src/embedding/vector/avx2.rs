//! Columns of a row as vectors of 8 floats.

use std::arch::x86_64::*;

use super::{BF16, Decode, F16, F32, INT8, scale_and_bias_f16c};
use crate::arch::Avx2;
use crate::embedding::Scale;

impl Decode for Avx2 {
    /// Scales and biases.
    type Int4 = [__m256; 2];

    #[inline(always)]
    fn int4(self, scales: __m256, biases: __m256) -> [__m256; 2] {
        [scales, biases]
    }

    #[inline(always)]
    fn scale_and_bias(self, row: &[u8], kind: Scale) -> (f32, f32) {
        // SAFETY: an `Avx2` exists only where the processor has F16C.
        unsafe { scale_and_bias_f16c(row, kind) }
    }

    #[inline(always)]
    unsafe fn columns<const E: u8>(self, from: *const u8, int4: [__m256; 2]) -> __m256 {
        // SAFETY: 8 columns can be read, by the caller's promise; no load needs alignment. An `Avx2` exists only where
        // the processor has AVX2, FMA and F16C.
        unsafe {
            match E {
                F32 => _mm256_loadu_ps(from.cast()),
                F16 => _mm256_cvtph_ps(_mm_loadu_si128(from.cast())),
                BF16 => {
                    let floats = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
                    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(floats))
                }
                INT8 => _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()))),
                // 8 numbers of 4 bits each, the first in the lowest.
                _ => {
                    let numbers = _mm256_set1_epi32(from.cast::<i32>().read_unaligned());
                    let each = _mm256_srlv_epi32(numbers, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
                    let each = _mm256_cvtepi32_ps(_mm256_and_si256(each, _mm256_set1_epi32(15)));
                    _mm256_fmadd_ps(each, int4[0], int4[1])
                }
            }
        }
    }
}
