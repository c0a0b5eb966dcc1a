//! One operation on one block, with the processor's vectors.
//!
//! The loops are plain; compilers vectorize them for the target features of the enclosing function. The only unsafe
//! code is the call of such a function.

use super::expr::{Binary, Unary};
use super::math::{exp, mul_add, normal_cdf, sigmoid, tanh};
use super::program::Op;
use crate::arch::Arch;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512};

/// An operand of a block: one value for each element, or one for all.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arg<'a> {
    Each(&'a [f32]),
    All(f32),
}

/// Computes `target = op(a, b, c)`; operands that the operation does not take are ignored.
pub(super) fn apply(arch: Arch, op: Op, target: &mut [f32], operands: [Arg<'_>; 3]) {
    match arch {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX-512.
        Arch::Avx512(token) => unsafe { apply_512(token, op, target, operands) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C.
        Arch::Avx2(token) => unsafe { apply_256(token, op, target, operands) },
        #[cfg(target_arch = "aarch64")]
        // Code for this target always has its vector instructions.
        Arch::Neon(_) => apply_any::<true>(op, target, operands),
        _ => apply_any::<false>(op, target, operands),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn apply_512(_: Avx512, op: Op, target: &mut [f32], operands: [Arg<'_>; 3]) {
    apply_any::<true>(op, target, operands);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn apply_256(_: Avx2, op: Op, target: &mut [f32], operands: [Arg<'_>; 3]) {
    apply_any::<true>(op, target, operands);
}

#[inline(always)]
fn apply_any<const FMA: bool>(op: Op, target: &mut [f32], [a, b, c]: [Arg<'_>; 3]) {
    match op {
        Op::Copy => map(target, a, |a| a),
        Op::MulAdd => map3(target, a, b, c, mul_add::<FMA>),
        Op::Binary(Binary::Add) => map2(target, a, b, |a, b| a + b),
        Op::Binary(Binary::Sub) => map2(target, a, b, |a, b| a - b),
        Op::Binary(Binary::Mul) => map2(target, a, b, |a, b| a * b),
        Op::Binary(Binary::Div) => map2(target, a, b, |a, b| a / b),
        Op::Unary(Unary::Neg) => map(target, a, |x| -x),
        Op::Unary(Unary::Abs) => map(target, a, f32::abs),
        Op::Unary(Unary::Sqrt) => map(target, a, f32::sqrt),
        Op::Unary(Unary::Exp) => map(target, a, exp::<FMA>),
        // A comparison that is false for NaN, so that NaN stays NaN.
        Op::Unary(Unary::Relu) => map(target, a, |x| if x < 0.0 { 0.0 } else { x }),
        Op::Unary(Unary::Step) => map(target, a, |x| if x > 0.0 { 1.0 } else { 0.0 }),
        Op::Unary(Unary::Sigmoid) => map(target, a, sigmoid::<FMA>),
        Op::Unary(Unary::Tanh) => map(target, a, tanh::<FMA>),
        Op::Unary(Unary::NormalCdf) => map(target, a, normal_cdf::<FMA>),
    }
}

// Loops, not `for_each`: its closure would be compiled as a separate function without these vectors.

#[inline(always)]
fn map(target: &mut [f32], a: Arg<'_>, f: impl Fn(f32) -> f32) {
    match a {
        Arg::Each(a) => {
            for (target, &a) in target.iter_mut().zip(a) {
                *target = f(a);
            }
        }
        Arg::All(a) => target.fill(f(a)),
    }
}

#[inline(always)]
fn map2(target: &mut [f32], a: Arg<'_>, b: Arg<'_>, f: impl Fn(f32, f32) -> f32) {
    match (a, b) {
        (a, Arg::All(b)) => map(target, a, |a| f(a, b)),
        (Arg::All(a), b) => map(target, b, |b| f(a, b)),
        (Arg::Each(a), Arg::Each(b)) => {
            for ((target, &a), &b) in target.iter_mut().zip(a).zip(b) {
                *target = f(a, b);
            }
        }
    }
}

#[inline(always)]
fn map3(target: &mut [f32], a: Arg<'_>, b: Arg<'_>, c: Arg<'_>, f: impl Fn(f32, f32, f32) -> f32) {
    match (a, b, c) {
        (a, b, Arg::All(c)) => map2(target, a, b, |a, b| f(a, b, c)),
        (a, Arg::All(b), c) => map2(target, a, c, |a, c| f(a, b, c)),
        (Arg::All(a), b, c) => map2(target, b, c, |b, c| f(a, b, c)),
        (Arg::Each(a), Arg::Each(b), Arg::Each(c)) => {
            for (((target, &a), &b), &c) in target.iter_mut().zip(a).zip(b).zip(c) {
                *target = f(a, b, c);
            }
        }
    }
}
