//! Vectors of floats, of each instruction set, for loops whose sums stay in registers.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::arch::Arch;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512, first_lanes};
use crate::gemm::multiply_add;

/// A vector of floats.
///
/// # Safety
///
/// Callers of its functions promise that the processor has the instructions, which holds in code called by
/// [`vectorize`]. Callers that pass an address promise that as many floats can be read or written there.
pub(super) trait Vector: Copy {
    /// Number of floats.
    const LANES: usize;

    /// A float in all lanes.
    unsafe fn splat(value: f32) -> Self;

    /// `self * by + sum`.
    unsafe fn multiply_add(self, by: Self, sum: Self) -> Self;

    /// Loads as many floats as lanes.
    unsafe fn load(from: *const f32) -> Self;

    /// Loads the first `count` floats, at most as many as lanes; the other lanes are 0.
    unsafe fn load_first(from: *const f32, count: usize) -> Self;

    /// [`load`](Vector::load) where `count` is all lanes, which is faster on some processors, else as
    /// [`load_first`](Vector::load_first).
    #[inline(always)]
    unsafe fn load_some(from: *const f32, count: usize) -> Self {
        // SAFETY: `count` floats can be read there, by the caller's promise.
        unsafe { if count == Self::LANES { Self::load(from) } else { Self::load_first(from, count) } }
    }

    /// The sum of all lanes, in their order.
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let mut lanes = [0.0_f32; 16];
        // SAFETY: no vector has more lanes.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes[..Self::LANES].iter().sum()
    }

    /// Writes all lanes.
    unsafe fn store(self, to: *mut f32);

    /// Writes the first `count` lanes, at most all.
    unsafe fn store_first(self, to: *mut f32, count: usize);

    /// [`store`](Vector::store) where `count` is all lanes, else as [`store_first`](Vector::store_first).
    #[inline(always)]
    unsafe fn store_some(self, to: *mut f32, count: usize) {
        // SAFETY: `count` floats can be written there, by the caller's promise.
        unsafe { if count == Self::LANES { self.store(to) } else { self.store_first(to, count) } }
    }
}

/// A loop over vectors of any kind. Its `run` must be `#[inline(always)]`: only then is it compiled for each.
pub(super) trait Kernel {
    /// Runs the loop.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`.
    unsafe fn run<V: Vector>(self);
}

/// Runs the loop with the vectors of `arch`.
pub(super) fn vectorize<K: Kernel>(arch: Arch, kernel: K) {
    match arch {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C.
        Arch::Avx2(token) => unsafe { avx2(token, kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX-512.
        Arch::Avx512(token) => unsafe { avx512(token, kernel) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: code for this target always has its vector instructions.
        Arch::Neon(_) => unsafe { kernel.run::<Plain<true>>() },
        // SAFETY: needs no instructions but those of any processor.
        _ => unsafe { kernel.run::<Plain<false>>() },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2<K: Kernel>(_: Avx2, kernel: K) {
    // SAFETY: these are the instructions of its vectors.
    unsafe { kernel.run::<__m256>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn avx512<K: Kernel>(_: Avx512, kernel: K) {
    // SAFETY: these are the instructions of its vectors.
    unsafe { kernel.run::<__m512>() }
}

/// Four floats without intrinsics; `FUSED` where a multiply-add is one instruction.
#[derive(Clone, Copy)]
struct Plain<const FUSED: bool>([f32; 4]);

impl<const FUSED: bool> Vector for Plain<FUSED> {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Plain([value; 4])
    }

    #[inline(always)]
    unsafe fn multiply_add(self, by: Self, sum: Self) -> Self {
        Plain(std::array::from_fn(|lane| multiply_add::<FUSED>(self.0[lane], by.0[lane], sum.0[lane])))
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: four floats can be read there, by the caller's promise.
        Plain(unsafe { from.cast::<[f32; 4]>().read() })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        // SAFETY: `count` floats can be read there, by the caller's promise.
        Plain(std::array::from_fn(|lane| if lane < count { unsafe { from.add(lane).read() } } else { 0.0 }))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: four floats can be written there, by the caller's promise.
        unsafe { to.cast::<[f32; 4]>().write(self.0) };
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        for (lane, &value) in self.0.iter().enumerate().take(count) {
            // SAFETY: `count` floats can be written there, by the caller's promise.
            unsafe { to.add(lane).write(value) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Vector for __m256 {
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the processor has AVX2, by the caller's promise; also below.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn multiply_add(self, by: Self, sum: Self) -> Self {
        // SAFETY: as above, and FMA.
        unsafe { _mm256_fmadd_ps(self, by, sum) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: eight floats can be read there.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        // SAFETY: the mask excludes floats that cannot be read.
        unsafe { _mm256_maskload_ps(from, first_lanes(count)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: eight floats can be written there.
        unsafe { _mm256_storeu_ps(to, self) };
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        // SAFETY: the mask excludes floats that cannot be written.
        unsafe { _mm256_maskstore_ps(to, first_lanes(count), self) };
    }
}

#[cfg(target_arch = "x86_64")]
impl Vector for __m512 {
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the processor has AVX-512, by the caller's promise; also below.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn multiply_add(self, by: Self, sum: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_fmadd_ps(self, by, sum) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: 16 floats can be read there.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        // SAFETY: the mask excludes floats that cannot be read.
        unsafe { _mm512_maskz_loadu_ps(0xFFFF_u16 >> (16 - count), from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: 16 floats can be written there.
        unsafe { _mm512_storeu_ps(to, self) };
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        // SAFETY: the mask excludes floats that cannot be written.
        unsafe { _mm512_mask_storeu_ps(to, 0xFFFF_u16 >> (16 - count), self) };
    }
}
