//! Instruction sets with the proof that this processor has them.
//!
//! Code for an instruction set takes its token. A token is made only by checking the processor, so holding one proves
//! that the code may run. Callers only need to check the code's conditions on its arguments.

use crate::Isa;

/// Code to compile for an instruction set. Its `run` and all that it calls must be `#[inline(always)]`: only then are
/// they compiled for it. Vectors must not be used in closures, which cannot have the attribute.
pub trait Code {
    /// Result type.
    type Output;

    /// Runs the code.
    fn run(self) -> Self::Output;
}

/// The proof that this processor has NEON, as every 64-bit ARM does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// Checks the compilation target, which always includes NEON.
    pub(crate) fn new() -> Option<Neon> {
        cfg!(all(target_arch = "aarch64", not(miri))).then_some(Neon(()))
    }
}

/// The proof that this processor has AVX2, FMA and F16C.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Checks the processor.
    pub(crate) fn new() -> Option<Avx2> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
        {
            return Some(Avx2(()));
        }
        None
    }

    /// Runs code, compiled for these instructions.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn run<C: Code>(self, code: C) -> C::Output {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn inner<C: Code>(code: C) -> C::Output {
            code.run()
        }
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C.
        unsafe { inner(code) }
    }
}

/// A mask of the first `count` of eight lanes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn first_lanes(count: usize) -> std::arch::x86_64::__m256i {
    use std::arch::x86_64::{_mm256_cmpgt_epi32, _mm256_set1_epi32, _mm256_setr_epi32};
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lane)
}

/// The proof that this processor has AVX-512 F, BW, DQ and VL, and everything that [`Avx2`] proves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// Checks the processor.
    pub(crate) fn new() -> Option<Avx512> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if Avx2::new().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            return Some(Avx512(()));
        }
        None
    }

    /// Runs code, compiled for these instructions.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn run<C: Code>(self, code: C) -> C::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        fn inner<C: Code>(code: C) -> C::Output {
            code.run()
        }
        // SAFETY: the token proves that the processor has AVX-512 F, BW, DQ and VL, and what `Avx2` proves.
        unsafe { inner(code) }
    }
}

/// An instruction set that this processor has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arch {
    /// Portable code.
    Scalar,
    /// NEON.
    Neon(Neon),
    /// AVX2 with FMA and F16C.
    Avx2(Avx2),
    /// AVX-512 F, BW, DQ and VL.
    Avx512(Avx512),
}

impl Arch {
    /// Returns this instruction set, if the processor has it.
    pub(crate) fn new(isa: Isa) -> Option<Arch> {
        match isa {
            Isa::Scalar => Some(Arch::Scalar),
            Isa::Neon => Neon::new().map(Arch::Neon),
            Isa::Avx2 => Avx2::new().map(Arch::Avx2),
            Isa::Avx512 => Avx512::new().map(Arch::Avx512),
        }
    }

    /// Its name.
    pub(crate) fn isa(self) -> Isa {
        match self {
            Arch::Scalar => Isa::Scalar,
            Arch::Neon(_) => Isa::Neon,
            Arch::Avx2(_) => Isa::Avx2,
            Arch::Avx512(_) => Isa::Avx512,
        }
    }

    /// Runs code, compiled for this instruction set.
    pub(crate) fn run<C: Code>(self, code: C) -> C::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Arch::Avx512(token) => token.run(code),
            #[cfg(target_arch = "x86_64")]
            Arch::Avx2(token) => token.run(code),
            _ => code.run(),
        }
    }

    /// All instruction sets of this processor, the plainest first.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Arch> {
        Isa::ALL.into_iter().filter_map(Arch::new)
    }
}

impl Isa {
    /// Whether this machine has it.
    #[must_use]
    pub fn is_available(self) -> bool {
        Arch::new(self).is_some()
    }

    /// The widest instruction set of this machine.
    #[must_use]
    pub fn best() -> Isa {
        Isa::ALL.into_iter().rev().find(|isa| isa.is_available()).unwrap_or(Isa::Scalar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_instructions_come_with_the_narrower() {
        // Instruction sets of one kind of processor.
        for family in [&[Isa::Scalar, Isa::Neon][..], &[Isa::Scalar, Isa::Avx2, Isa::Avx512]] {
            let has: Vec<bool> = family.iter().map(|isa| isa.is_available()).collect();
            assert!(has[0] && has.is_sorted_by(|narrower, wider| narrower >= wider), "{has:?}");
        }
        assert_eq!(Isa::Neon.is_available(), cfg!(all(target_arch = "aarch64", not(miri))));
        assert!(Arch::all().map(Arch::isa).eq(Isa::ALL.into_iter().filter(|isa| isa.is_available())));
    }
}
