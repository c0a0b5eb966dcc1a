//! Columns of a row as vectors of 16 floats.

use std::arch::x86_64::*;

use super::{BF16, F16, F32, INT4, INT8};

/// Floats in a vector.
pub(in crate::embedding) const LANES: usize = 16;

/// The columns of a row's slice, as vectors: the values, except for int8 the integers.
pub(in crate::embedding) struct Values<const E: u8> {
    start: *const u8,
    /// The 16 values of an int4 number.
    values: __m512,
}

impl<const E: u8> Values<E> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(in crate::embedding) fn new(row: &[u8], scales: __m512, biases: __m512) -> Values<E> {
        let mut values = scales;
        if E == INT4 {
            let count = _mm512_setr_ps(
                0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
            );
            values = _mm512_fmadd_ps(count, scales, biases);
        }
        Values { start: row.as_ptr(), values }
    }

    /// # Safety
    ///
    /// The row has 16 columns for this vector.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(in crate::embedding) unsafe fn load(&self, vector: usize) -> __m512 {
        // SAFETY: 16 columns can be read, by the caller's promise; no load needs alignment.
        unsafe {
            match E {
                F32 => _mm512_loadu_ps(self.start.add(vector * 64).cast()),
                F16 => _mm512_cvtph_ps(_mm256_loadu_si256(self.start.add(vector * 32).cast())),
                BF16 => from_bf16(_mm256_loadu_si256(self.start.add(vector * 32).cast())),
                INT8 => from_int8(_mm_loadu_si128(self.start.add(vector * 16).cast())),
                _ => self.int4(self.start.add(vector * 8).cast::<u64>().read_unaligned()),
            }
        }
    }

    /// # Safety
    ///
    /// The row has the columns of the mask's bits for this vector, which are its first.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(in crate::embedding) unsafe fn load_part(&self, vector: usize, mask: u16) -> __m512 {
        // SAFETY: the masked columns can be read, by the caller's promise; the others are not touched.
        unsafe {
            match E {
                F32 => _mm512_maskz_loadu_ps(mask, self.start.add(vector * 64).cast()),
                F16 => _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, self.start.add(vector * 32).cast())),
                BF16 => from_bf16(_mm256_maskz_loadu_epi16(mask, self.start.add(vector * 32).cast())),
                INT8 => from_int8(_mm_maskz_loadu_epi8(mask, self.start.add(vector * 16).cast())),
                _ => {
                    let bytes = (1_u16 << mask.count_ones().div_ceil(2)) - 1;
                    let bytes = _mm_maskz_loadu_epi8(bytes, self.start.add(vector * 8).cast());
                    self.int4(_mm_cvtsi128_si64(bytes) as u64)
                }
            }
        }
    }

    /// The values of 16 numbers of 4 bits each, the first in the lowest.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn int4(&self, numbers: u64) -> __m512 {
        let low = _mm512_set1_epi32(numbers as i32);
        let both = _mm512_mask_set1_epi32(low, 0xff00, (numbers >> 32) as i32);
        let shifts = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
        // Only the lowest 4 bits of a lane choose: the bits above them need not be cleared.
        _mm512_permutexvar_ps(_mm512_srlv_epi32(both, shifts), self.values)
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn from_bf16(halves: __m256i) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn from_int8(bytes: __m128i) -> __m512 {
    _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))
}
