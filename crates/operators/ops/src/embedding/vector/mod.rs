//! Rows as vectors of floats, for each instruction set. Element types are numbers here, so that they can be constants
//! of kernels.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

use super::Scale;
use crate::simd::Simd;

pub(super) const F32: u8 = 0;
pub(super) const F16: u8 = 1;
pub(super) const BF16: u8 = 2;
pub(super) const INT8: u8 = 3;
pub(super) const INT4: u8 = 4;

/// Number of bits of an element.
#[inline(always)]
pub(super) const fn bits(element: u8) -> usize {
    [32, 16, 16, 8, 4][element as usize]
}

/// Vectors that columns of a row can be converted to.
pub(super) trait Decode: Simd {
    /// Most vectors whose sums fit the registers.
    const VECTORS: usize = 8;
    /// Whether part of a vector is loaded as fast as a whole.
    const MASKED: bool = false;
    /// Scale and bias of int4 numbers, as the conversion needs them.
    type Int4: Copy;

    /// Prepares the conversion of int4 numbers.
    fn int4(self, scales: Self::V, biases: Self::V) -> Self::Int4;

    /// Scale and bias at the start of a quantized row. Never a call, which would move all sums out of the registers and
    /// double the time of a short row.
    fn scale_and_bias(self, row: &[u8], kind: Scale) -> (f32, f32);

    /// Loads columns of type `E`: the values, except for int8 the integers.
    ///
    /// # Safety
    ///
    /// As many columns as lanes can be read.
    unsafe fn columns<const E: u8>(self, from: *const u8, int4: Self::Int4) -> Self::V;

    /// Loads the first `count` columns of type `E`, of 1 to all lanes; the other lanes have any value.
    ///
    /// # Safety
    ///
    /// `count` columns can be read.
    #[inline(always)]
    unsafe fn first_columns<const E: u8>(self, from: *const u8, int4: Self::Int4, count: usize) -> Self::V {
        let mut bytes = [0_u8; 32];
        // SAFETY: `count` columns can be read, by the caller's promise; those of eight lanes fit the copy.
        unsafe {
            if E == F32 {
                return self.read_first(from.cast(), count);
            }
            from.copy_to_nonoverlapping(bytes.as_mut_ptr(), (count * bits(E)).div_ceil(8));
            self.columns::<E>(bytes.as_ptr(), int4)
        }
    }
}

/// The columns of a row's slice, as vectors: the values, except for int8 the integers.
pub(super) struct Values<S: Decode, const E: u8> {
    s: S,
    start: *const u8,
    int4: S::Int4,
}

impl<S: Decode, const E: u8> Values<S, E> {
    #[inline(always)]
    pub(super) fn new(s: S, row: &[u8], scales: S::V, biases: S::V) -> Values<S, E> {
        Values { s, start: row.as_ptr(), int4: s.int4(scales, biases) }
    }

    /// Loads a whole vector.
    ///
    /// # Safety
    ///
    /// The row has as many columns as lanes for this vector.
    #[inline(always)]
    pub(super) unsafe fn load(&self, vector: usize) -> S::V {
        // SAFETY: the columns can be read, by the caller's promise.
        unsafe { self.s.columns::<E>(self.place(vector), self.int4) }
    }

    /// Loads a vector in part; the lanes from `columns` on have any value.
    ///
    /// # Safety
    ///
    /// The row has `columns` columns, of 1 to all lanes, for this vector.
    #[inline(always)]
    pub(super) unsafe fn load_part(&self, vector: usize, columns: usize) -> S::V {
        // SAFETY: the columns can be read, by the caller's promise.
        unsafe { self.s.first_columns::<E>(self.place(vector), self.int4, columns) }
    }

    /// Address of the first column of a vector.
    #[inline(always)]
    fn place(&self, vector: usize) -> *const u8 {
        self.start.wrapping_add(vector * S::LANES * bits(E) / 8)
    }
}

/// Scale and bias at the start of a quantized row, both halves with one instruction.
///
/// # Safety
///
/// The processor has F16C.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn scale_and_bias_f16c(row: &[u8], kind: Scale) -> (f32, f32) {
    use std::arch::x86_64::{_mm_cvtph_ps, _mm_cvtsi32_si128, _mm_cvtss_f32, _mm_movehdup_ps};
    let words = row.as_chunks::<4>().0;
    match kind {
        Scale::F16 => {
            let halves = i32::from_ne_bytes(words[0]);
            // SAFETY: the processor has F16C, by the caller's promise, and with it SSE3.
            unsafe {
                let both = _mm_cvtph_ps(_mm_cvtsi32_si128(halves));
                (_mm_cvtss_f32(both), _mm_cvtss_f32(_mm_movehdup_ps(both)))
            }
        }
        Scale::F32 => (f32::from_ne_bytes(words[0]), f32::from_ne_bytes(words[1])),
    }
}
