//! Loops over one part of a loss's elements.
//!
//! They are plain; compilers vectorize them for the target features of the enclosing function. The only unsafe code is
//! the call of such a function.

use super::Loss;
use crate::arch::Arch;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512};
use crate::elementwise::math::{exp, ln_1p};

/// Number of independent partial sums.
const LANES: usize = 16;

/// Number of losses that are computed before they are summed.
const BLOCK: usize = 512;

/// The elements of a part.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) prediction: &'a [f32],
    pub(super) target: &'a [f32],
}

/// Requested results. Slices have the length of the part.
pub(super) enum Job<'a> {
    Sum,
    SumAndGradient { scale: f32, gradient: &'a mut [f32] },
    Each { out: &'a mut [f32] },
    Gradient { upstream: &'a [f32], gradient: &'a mut [f32] },
}

/// Does the job, and returns the sum of losses if the job computes it.
pub(super) fn run(arch: Arch, loss: Loss, place: Place<'_>, job: &mut Job<'_>) -> f64 {
    match arch {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX-512.
        Arch::Avx512(token) => unsafe { run_512(token, loss, place, job) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C.
        Arch::Avx2(token) => unsafe { run_256(token, loss, place, job) },
        #[cfg(target_arch = "aarch64")]
        // Code for this target always has its vector instructions.
        Arch::Neon(_) => run_any::<true>(loss, place, job),
        _ => run_any::<false>(loss, place, job),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn run_512(_: Avx512, loss: Loss, place: Place<'_>, job: &mut Job<'_>) -> f64 {
    run_any::<true>(loss, place, job)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_256(_: Avx2, loss: Loss, place: Place<'_>, job: &mut Job<'_>) -> f64 {
    run_any::<true>(loss, place, job)
}

#[inline(always)]
fn run_any<const FMA: bool>(loss: Loss, place: Place<'_>, job: &mut Job<'_>) -> f64 {
    match loss {
        Loss::Mse => run_as(place, job, mse),
        Loss::BceWithLogits => run_as(place, job, bce::<FMA>),
    }
}

/// Loss and slope of an element.
#[inline(always)]
fn mse(prediction: f32, target: f32) -> (f32, f32) {
    let away = prediction - target;
    (away * away, 2.0 * away)
}

/// Loss and slope of an element.
#[inline(always)]
fn bce<const FMA: bool>(prediction: f32, target: f32) -> (f32, f32) {
    let size = prediction.abs();
    let power = exp::<FMA>(-size);
    let wrong = if prediction < 0.0 { target } else { 1.0 - target };
    let loss = size * wrong + ln_1p::<FMA>(power);
    let sigmoid = (if prediction < 0.0 { power } else { 1.0 }) / (1.0 + power);
    (loss, sigmoid - target)
}

#[inline(always)]
fn run_as(place: Place<'_>, job: &mut Job<'_>, of: impl Fn(f32, f32) -> (f32, f32)) -> f64 {
    let Place { prediction, target } = place;
    let pairs = prediction.iter().zip(target);
    let mut losses = [0.0; BLOCK];
    let mut sum = 0.0;
    // Loops, not `for_each`: its closure would be compiled as a separate function without these vectors.
    match job {
        Job::Sum => {
            for (x, z) in prediction.chunks(BLOCK).zip(target.chunks(BLOCK)) {
                for ((loss, &x), &z) in losses.iter_mut().zip(x).zip(z) {
                    *loss = of(x, z).0;
                }
                sum += total(&losses[..x.len()]);
            }
        }
        Job::SumAndGradient { scale, gradient } => {
            let scale = *scale;
            let blocks = prediction.chunks(BLOCK).zip(target.chunks(BLOCK));
            for ((x, z), gradient) in blocks.zip(gradient.chunks_mut(BLOCK)) {
                for (((loss, &x), &z), out) in losses.iter_mut().zip(x).zip(z).zip(gradient) {
                    let (value, slope) = of(x, z);
                    *loss = value;
                    *out = slope * scale;
                }
                sum += total(&losses[..x.len()]);
            }
        }
        Job::Each { out } => {
            for (out, (&x, &z)) in out.iter_mut().zip(pairs) {
                *out = of(x, z).0;
            }
        }
        Job::Gradient { upstream, gradient } => {
            for ((out, (&x, &z)), &above) in gradient.iter_mut().zip(pairs).zip(upstream.iter()) {
                *out = of(x, z).1 * above;
            }
        }
    }
    sum
}

/// The sum in double precision, with independent partial sums.
#[inline(always)]
fn total(values: &[f32]) -> f64 {
    let mut sums = [0.0; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for values in whole {
        for (sum, &value) in sums.iter_mut().zip(values) {
            *sum += f64::from(value);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&value| f64::from(value)).sum::<f64>()
}
