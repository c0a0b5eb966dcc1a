//! Compiles a plain loop once for each instruction set, so that the compiler may use its vectors.

use crate::arch::Arch;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512};

/// A loop without intrinsics. Its `run` must be `#[inline(always)]`: only then is it compiled separately for each set.
pub(crate) trait Loop {
    /// Result type.
    type Out;

    /// Runs the loop; `FUSED` where a multiply-add is one instruction.
    fn run<const FUSED: bool>(self) -> Self::Out;
}

/// Runs the loop with the vectors of `arch`.
pub(crate) fn widen<L: Loop>(arch: Arch, body: L) -> L::Out {
    match arch {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C.
        Arch::Avx2(token) => unsafe { avx2(token, body) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX-512.
        Arch::Avx512(token) => unsafe { avx512(token, body) },
        #[cfg(target_arch = "aarch64")]
        // Code for this target always has its vector instructions.
        Arch::Neon(_) => body.run::<true>(),
        _ => body.run::<false>(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2<L: Loop>(_: Avx2, body: L) -> L::Out {
    body.run::<true>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn avx512<L: Loop>(_: Avx512, body: L) -> L::Out {
    body.run::<true>()
}

/// `a * b + sum`, as one instruction if `FUSED`: the library call that replaces it elsewhere is slow.
#[inline(always)]
pub(crate) fn multiply_add<const FUSED: bool>(a: f32, b: f32, sum: f32) -> f32 {
    if FUSED { a.mul_add(b, sum) } else { a * b + sum }
}
