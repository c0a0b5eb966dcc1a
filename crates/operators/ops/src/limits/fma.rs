//! Peak rate of floating-point operations.

use std::hint::black_box;
use std::time::Instant;

use super::{Limit, Way};
use crate::Cpu;
use crate::arch::Arch;
#[cfg(target_arch = "aarch64")]
use crate::arch::Neon;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512};

/// Number of independent chains: more than latency times throughput of any processor.
const CHAINS: usize = 12;

/// Number of links of a chain in one repetition.
const LINKS: usize = 1 << 16;

/// Measures floating-point operations per second, a multiply-add counting two, on 32-bit floats in registers.
#[must_use]
pub fn fma_peak(cpu: &Cpu, repetitions: usize) -> Limit {
    let mut best = f64::INFINITY;
    for _ in 0..repetitions.max(1) {
        let start = Instant::now();
        cpu.run(cpu.threads(), |_| match cpu.arch() {
            // SAFETY: the token proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Arch::Avx512(token) => unsafe { avx512(token) },
            // SAFETY: the token proves that the processor has AVX2, FMA and F16C.
            #[cfg(target_arch = "x86_64")]
            Arch::Avx2(token) => unsafe { avx2(token) },
            // SAFETY: the token proves that the processor has NEON.
            #[cfg(target_arch = "aarch64")]
            Arch::Neon(token) => unsafe { neon(token) },
            _ => scalar(),
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    let flops = 2 * CHAINS * LINKS * cpu.isa().lanes() * cpu.threads();
    Limit { per_second: flops as f64 / best, way: Way::Chains }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(_: Avx512) {
    use std::arch::x86_64::*;
    let factor = _mm512_set1_ps(black_box(0.5));
    let mut chains = [_mm512_set1_ps(black_box(1.0)); CHAINS];
    for _ in 0..LINKS {
        chains.iter_mut().for_each(|chain| *chain = _mm512_fmadd_ps(*chain, factor, factor));
    }
    black_box(chains);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(_: Avx2) {
    use std::arch::x86_64::*;
    let factor = _mm256_set1_ps(black_box(0.5));
    let mut chains = [_mm256_set1_ps(black_box(1.0)); CHAINS];
    for _ in 0..LINKS {
        chains.iter_mut().for_each(|chain| *chain = _mm256_fmadd_ps(*chain, factor, factor));
    }
    black_box(chains);
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn neon(_: Neon) {
    use std::arch::aarch64::*;
    let factor = vdupq_n_f32(black_box(0.5));
    let mut chains = [vdupq_n_f32(black_box(1.0)); CHAINS];
    for _ in 0..LINKS {
        chains.iter_mut().for_each(|chain| *chain = vfmaq_f32(factor, *chain, factor));
    }
    black_box(chains);
}

/// A product and a sum: portable code has no fused multiply-add that is certain to be an instruction.
fn scalar() {
    let factor = black_box(0.5_f32);
    let mut chains = [black_box(1.0_f32); CHAINS];
    for _ in 0..LINKS {
        // Kept separate, since vectors of any width would not be scalar code.
        chains.iter_mut().for_each(|chain| *chain = black_box(*chain * factor + factor));
    }
    black_box(chains);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;

    #[test]
    fn wider_instructions_do_more() {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            let peak = fma_peak(&Cpu::with_isa(isa, 1).unwrap(), 3).per_second;
            assert!(peak > 1e6, "{isa}: {peak}");
        }
    }
}
