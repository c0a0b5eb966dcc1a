//! Columns of a row as vectors of 8 floats, in two registers: as many as a load of shorter elements gives.

use std::arch::aarch64::*;
use std::arch::asm;

use super::{BF16, Decode, F16, F32, INT8};
use crate::arch::Neon;
use crate::embedding::{Scale, codec};
use crate::simd::{Pair, Simd};

type Eight = [float32x4_t; 2];

impl Decode for Pair<Neon> {
    /// Scales and biases.
    type Int4 = [Eight; 2];

    #[inline(always)]
    fn int4(self, scales: Eight, biases: Eight) -> [Eight; 2] {
        [scales, biases]
    }

    #[inline(always)]
    fn scale_and_bias(self, row: &[u8], kind: Scale) -> (f32, f32) {
        codec::scale_and_bias(row, kind)
    }

    #[inline(always)]
    unsafe fn columns<const E: u8>(self, from: *const u8, int4: [Eight; 2]) -> Eight {
        // SAFETY: 8 columns can be read, by the caller's promise; no load needs alignment. A `Neon` exists only where
        // the processor has NEON.
        unsafe {
            match E {
                F32 => [vreinterpretq_f32_u8(vld1q_u8(from)), vreinterpretq_f32_u8(vld1q_u8(from.add(16)))],
                F16 => from_f16(vreinterpretq_u16_u8(vld1q_u8(from))),
                BF16 => {
                    let halves = vreinterpretq_u16_u8(vld1q_u8(from));
                    let (low, high) =
                        (vshll_n_u16::<16>(vget_low_u16(halves)), vshll_high_n_u16::<16>(halves));
                    [vreinterpretq_f32_u32(low), vreinterpretq_f32_u32(high)]
                }
                INT8 => from_int8(vld1_u8(from)),
                // 8 numbers of 4 bits each, the first in the lowest.
                _ => {
                    let bytes = vcreate_u8(u64::from(from.cast::<u32>().read_unaligned()));
                    let each = vzip1_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8::<4>(bytes));
                    self.mul_add(from_int8(each), int4[0], int4[1])
                }
            }
        }
    }
}

/// Converts with inline assembly, since the language has no stable function for it.
#[inline(always)]
fn from_f16(halves: uint16x8_t) -> Eight {
    let (low, high): (float32x4_t, float32x4_t);
    // SAFETY: both instructions are part of NEON, which every processor of this target has, and read and write only
    // these registers.
    unsafe {
        asm!("fcvtl {low:v}.4s, {halves:v}.4h", "fcvtl2 {high:v}.4s, {halves:v}.8h", low = out(vreg) low,
            high = lateout(vreg) high, halves = in(vreg) halves, options(pure, nomem, nostack, preserves_flags));
    }
    [low, high]
}

#[inline(always)]
fn from_int8(bytes: uint8x8_t) -> Eight {
    // SAFETY: every processor of this target has NEON.
    unsafe {
        let halves = vmovl_u8(bytes);
        let (low, high) = (vmovl_u16(vget_low_u16(halves)), vmovl_high_u16(halves));
        [vcvtq_f32_u32(low), vcvtq_f32_u32(high)]
    }
}
