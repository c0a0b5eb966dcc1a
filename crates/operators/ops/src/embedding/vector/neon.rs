//! Columns of a row as vectors of 8 floats, in two registers.

use std::arch::aarch64::*;
use std::arch::asm;

use super::{BF16, F16, F32, INT8};
use crate::arch::Neon;

/// Floats in a vector.
pub(in crate::embedding) const LANES: usize = 8;

/// Eight floats: the first four and the last.
#[derive(Clone, Copy)]
pub(in crate::embedding) struct Eight(pub(in crate::embedding) [float32x4_t; 2]);

impl Eight {
    /// Eight equal floats.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) fn splat(value: f32) -> Eight {
        Eight([vdupq_n_f32(value); 2])
    }

    /// Loads eight neighbours.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) fn load(from: &[f32; LANES]) -> Eight {
        // SAFETY: eight readable floats.
        unsafe { Eight([vld1q_f32(from.as_ptr()), vld1q_f32(from.as_ptr().add(4))]) }
    }

    /// Stores eight neighbours.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) fn store(self, to: &mut [f32; LANES]) {
        // SAFETY: eight writable floats.
        unsafe {
            vst1q_f32(to.as_mut_ptr(), self.0[0]);
            vst1q_f32(to.as_mut_ptr().add(4), self.0[1]);
        }
    }

    /// `self + other`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) fn add(self, other: Eight) -> Eight {
        Eight([vaddq_f32(self.0[0], other.0[0]), vaddq_f32(self.0[1], other.0[1])])
    }

    /// `self * other`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) fn mul(self, other: Eight) -> Eight {
        Eight([vmulq_f32(self.0[0], other.0[0]), vmulq_f32(self.0[1], other.0[1])])
    }

    /// `a * b + self`, rounded once.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) fn plus(self, a: Eight, b: Eight) -> Eight {
        Eight([vfmaq_f32(self.0[0], a.0[0], b.0[0]), vfmaq_f32(self.0[1], a.0[1], b.0[1])])
    }

    /// The larger of the two; `other` where they do not compare.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) fn larger(self, other: Eight) -> Eight {
        let one = |a, b| vbslq_f32(vcgtq_f32(a, b), a, b);
        Eight([one(self.0[0], other.0[0]), one(self.0[1], other.0[1])])
    }
}

/// The columns of a row's slice, as vectors: the values, except for int8 the integers.
pub(in crate::embedding) struct Values<const E: u8> {
    start: *const u8,
    scales: Eight,
    biases: Eight,
}

impl<const E: u8> Values<E> {
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) fn new(_: Neon, row: &[u8], scales: Eight, biases: Eight) -> Values<E> {
        Values { start: row.as_ptr(), scales, biases }
    }

    /// # Safety
    ///
    /// The row has 8 columns for this vector.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) unsafe fn load(&self, vector: usize) -> Eight {
        // SAFETY: 8 columns can be read, by the caller's promise; no load needs alignment.
        unsafe {
            match E {
                F32 => Eight([
                    vreinterpretq_f32_u8(vld1q_u8(self.start.add(vector * 32))),
                    vreinterpretq_f32_u8(vld1q_u8(self.start.add(vector * 32 + 16))),
                ]),
                F16 => from_f16(vreinterpretq_u16_u8(vld1q_u8(self.start.add(vector * 16)))),
                BF16 => from_bf16(vreinterpretq_u16_u8(vld1q_u8(self.start.add(vector * 16)))),
                INT8 => from_int8(vld1_u8(self.start.add(vector * 8))),
                _ => self.int4(self.start.add(vector * 4).cast::<u32>().read_unaligned()),
            }
        }
    }

    /// # Safety
    ///
    /// The row has `columns` columns, of 1 to 8, for this vector.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::embedding) unsafe fn load_part(&self, vector: usize, columns: usize) -> Eight {
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
    #[target_feature(enable = "neon")]
    fn int4(&self, numbers: u32) -> Eight {
        let bytes = vcreate_u8(u64::from(numbers));
        let each = vzip1_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8::<4>(bytes));
        self.biases.plus(from_int8(each), self.scales)
    }
}

/// Converts with inline assembly, since the language has no stable function for it.
#[inline]
#[target_feature(enable = "neon")]
fn from_f16(halves: uint16x8_t) -> Eight {
    let (low, high): (float32x4_t, float32x4_t);
    // SAFETY: both instructions are part of NEON, and read and write only these registers.
    unsafe {
        asm!("fcvtl {low:v}.4s, {halves:v}.4h", "fcvtl2 {high:v}.4s, {halves:v}.8h", low = out(vreg) low,
            high = lateout(vreg) high, halves = in(vreg) halves, options(pure, nomem, nostack, preserves_flags));
    }
    Eight([low, high])
}

#[inline]
#[target_feature(enable = "neon")]
fn from_bf16(halves: uint16x8_t) -> Eight {
    let (low, high) = (vshll_n_u16::<16>(vget_low_u16(halves)), vshll_high_n_u16::<16>(halves));
    Eight([vreinterpretq_f32_u32(low), vreinterpretq_f32_u32(high)])
}

#[inline]
#[target_feature(enable = "neon")]
fn from_int8(bytes: uint8x8_t) -> Eight {
    let halves = vmovl_u8(bytes);
    let (low, high) = (vmovl_u16(vget_low_u16(halves)), vmovl_high_u16(halves));
    Eight([vcvtq_f32_u32(low), vcvtq_f32_u32(high)])
}
