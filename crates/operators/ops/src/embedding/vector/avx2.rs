//! Columns of a row as vectors of 8 floats.

use std::arch::x86_64::*;

use super::{BF16, F16, F32, INT8};

/// Floats in a vector.
pub(in crate::embedding) const LANES: usize = 8;

/// Scale and bias at the start of a quantized row. A macro, since a call would move all sums out of the registers: the
/// compiler made one, which doubled the time of a short row.
macro_rules! scale_and_bias {
    ($row:expr, $kind:expr) => {{
        let row: &[u8] = $row;
        match $kind {
            // Both halves with one instruction.
            $crate::embedding::Scale::F16 => {
                let halves = i32::from_ne_bytes([row[0], row[1], row[2], row[3]]);
                let both = _mm_cvtph_ps(_mm_cvtsi32_si128(halves));
                (_mm_cvtss_f32(both), _mm_cvtss_f32(_mm_movehdup_ps(both)))
            }
            $crate::embedding::Scale::F32 => {
                let scale = f32::from_ne_bytes([row[0], row[1], row[2], row[3]]);
                (scale, f32::from_ne_bytes([row[4], row[5], row[6], row[7]]))
            }
        }
    }};
}
pub(in crate::embedding) use scale_and_bias;

/// The columns of a row's slice, as vectors: the values, except for int8 the integers.
pub(in crate::embedding) struct Values<const E: u8> {
    start: *const u8,
    scales: __m256,
    biases: __m256,
}

impl<const E: u8> Values<E> {
    #[inline]
    pub(in crate::embedding) fn new(row: &[u8], scales: __m256, biases: __m256) -> Values<E> {
        Values { start: row.as_ptr(), scales, biases }
    }

    /// # Safety
    ///
    /// The row has 8 columns for this vector.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(in crate::embedding) unsafe fn load(&self, vector: usize) -> __m256 {
        // SAFETY: 8 columns can be read, by the caller's promise; no load needs alignment.
        unsafe {
            match E {
                F32 => _mm256_loadu_ps(self.start.add(vector * 32).cast()),
                F16 => _mm256_cvtph_ps(_mm_loadu_si128(self.start.add(vector * 16).cast())),
                BF16 => from_bf16(_mm_loadu_si128(self.start.add(vector * 16).cast())),
                INT8 => from_int8(_mm_loadl_epi64(self.start.add(vector * 8).cast())),
                _ => self.int4(self.start.add(vector * 4).cast::<u32>().read_unaligned()),
            }
        }
    }

    /// # Safety
    ///
    /// The row has `columns` columns, of 1 to 8, for this vector.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(in crate::embedding) unsafe fn load_part(&self, vector: usize, columns: usize) -> __m256 {
        if columns == LANES {
            // SAFETY: by the caller's promise.
            return unsafe { self.load(vector) };
        }
        let bits = [32, 16, 16, 8, 4][usize::from(E)];
        let mut bytes = [0_u8; 32];
        // SAFETY: the bytes of these columns can be read, by the caller's promise, and fewer than 8 columns fit.
        unsafe {
            let from = self.start.add(vector * LANES * bits / 8);
            from.copy_to_nonoverlapping(bytes.as_mut_ptr(), (columns * bits).div_ceil(8));
            Values::<E> { start: bytes.as_ptr(), ..*self }.load(0)
        }
    }

    /// The values of 8 numbers of 4 bits each, the first in the lowest.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn int4(&self, numbers: u32) -> __m256 {
        let shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
        let each = _mm256_srlv_epi32(_mm256_set1_epi32(numbers as i32), shifts);
        let each = _mm256_cvtepi32_ps(_mm256_and_si256(each, _mm256_set1_epi32(15)));
        _mm256_fmadd_ps(each, self.scales, self.biases)
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn from_bf16(halves: __m128i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves)))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn from_int8(bytes: __m128i) -> __m256 {
    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
}
