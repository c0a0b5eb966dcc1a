//! Weights in single precision, from and to 16 bits, without branches so that whole rows are vectorized.

use half::{bf16, f16};

use super::super::Plain;
use super::Rounding;

/// The random bits of a row, or `None` for rounding to the nearest.
#[derive(Clone, Copy)]
pub(super) struct Dice(Option<[u32; 2]>);

/// A mix of all bits of a number (the finalizer of SplitMix64).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Dice {
    /// The random bits of a row in a step.
    pub(super) fn new(rounding: Rounding, step: u64, table: usize, row: usize) -> Dice {
        Dice(match rounding {
            Rounding::Nearest => None,
            Rounding::Stochastic { seed } => {
                let bits = mix(mix(mix(mix(seed) ^ step) ^ table as u64) ^ row as u64);
                Some([bits as u32, (bits >> 32) as u32])
            }
        })
    }
}

/// Returns the random bits of a column.
#[inline(always)]
fn roll([a, b]: [u32; 2], column: usize) -> u32 {
    // The finalizer of MurmurHash3 over a counter that starts at random.
    let bits = a.wrapping_add((column as u32).wrapping_mul(0x9e37_79b9));
    let bits = (bits ^ (bits >> 16)).wrapping_mul(0x85eb_ca6b);
    let bits = (bits ^ (bits >> 13)).wrapping_mul(0xc2b2_ae35);
    (bits ^ (bits >> 16)) ^ b
}

/// A type of weights that can be trained.
pub(super) trait Weight: Plain + Send + Sync {
    /// Returns a row in single precision for changes: itself, or a copy in `scratch`, which has its length.
    fn open<'a>(row: &'a mut [Self], scratch: &'a mut [f32]) -> &'a mut [f32];

    /// Writes the copy in `scratch` back, if it is one.
    fn close(row: &mut [Self], scratch: &[f32], dice: Dice);
}

impl Weight for f32 {
    #[inline(always)]
    fn open<'a>(row: &'a mut [f32], _: &'a mut [f32]) -> &'a mut [f32] {
        row
    }

    #[inline(always)]
    fn close(_: &mut [f32], _: &[f32], _: Dice) {}
}

impl Weight for bf16 {
    #[inline(always)]
    fn open<'a>(row: &'a mut [bf16], scratch: &'a mut [f32]) -> &'a mut [f32] {
        for (wide, narrow) in scratch.iter_mut().zip(&*row) {
            *wide = widen_bf16(*narrow);
        }
        scratch
    }

    #[inline(always)]
    fn close(row: &mut [bf16], scratch: &[f32], dice: Dice) {
        if let Some(dice) = dice.0 {
            for (column, (narrow, wide)) in row.iter_mut().zip(scratch).enumerate() {
                *narrow = stochastic_bf16(*wide, roll(dice, column));
            }
        } else {
            for (narrow, wide) in row.iter_mut().zip(scratch) {
                *narrow = nearest_bf16(*wide);
            }
        }
    }
}

impl Weight for f16 {
    #[inline(always)]
    fn open<'a>(row: &'a mut [f16], scratch: &'a mut [f32]) -> &'a mut [f32] {
        for (wide, narrow) in scratch.iter_mut().zip(&*row) {
            *wide = widen_f16(*narrow);
        }
        scratch
    }

    #[inline(always)]
    fn close(row: &mut [f16], scratch: &[f32], dice: Dice) {
        if let Some(dice) = dice.0 {
            for (column, (narrow, wide)) in row.iter_mut().zip(scratch).enumerate() {
                *narrow = stochastic_f16(*wide, roll(dice, column));
            }
        } else {
            for (narrow, wide) in row.iter_mut().zip(scratch) {
                *narrow = nearest_f16(*wide);
            }
        }
    }
}

#[inline(always)]
fn widen_bf16(narrow: bf16) -> f32 {
    f32::from_bits(u32::from(narrow.to_bits()) << 16)
}

#[inline(always)]
fn nearest_bf16(wide: f32) -> bf16 {
    let bits = wide.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    bf16::from_bits(if wide.is_nan() { bits >> 16 | 0x40 } else { rounded } as u16)
}

#[inline(always)]
fn stochastic_bf16(wide: f32, random: u32) -> bf16 {
    let bits = wide.to_bits();
    let rounded = bits.wrapping_add(random & 0xffff) >> 16;
    let kept = bits >> 16 | if wide.is_nan() { 0x40 } else { 0 };
    bf16::from_bits(if wide.is_finite() { rounded } else { kept } as u16)
}

#[inline(always)]
fn widen_f16(narrow: f16) -> f32 {
    let bits = u32::from(narrow.to_bits());
    let (sign, rest) = ((bits & 0x8000) << 16, (bits & 0x7fff) << 13);
    // Treated as if the exponent were single precision's, then scaled by 2^112: right for normal and subnormal numbers.
    let finite = (f32::from_bits(rest) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = rest | 0x7f80_0000;
    f32::from_bits(sign | if bits & 0x7c00 == 0x7c00 { special } else { finite })
}

/// A magnitude of single precision, rounded to the bits of a half in two ways: `normal` is right where it is at least
/// 2^-14, and `small` where it is below.
#[inline(always)]
fn join_f16(wide: f32, normal: u32, small: u32) -> f16 {
    let bits = wide.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let finite = if magnitude < (127 - 14) << 23 { small } else { normal.min(0x7c00) };
    let nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
    let all = if magnitude > 0x7f80_0000 { nan } else { finite };
    f16::from_bits((bits >> 16 & 0x8000 | all) as u16)
}

#[inline(always)]
fn nearest_f16(wide: f32) -> f16 {
    let magnitude = wide.to_bits() & 0x7fff_ffff;
    let rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    let normal = (rounded >> 13).saturating_sub(112 << 10);
    // Adding 0.5 leaves single precision as many bits as a subnormal half has.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    join_f16(wide, normal, small)
}

#[inline(always)]
fn stochastic_f16(wide: f32, random: u32) -> f16 {
    let magnitude = wide.to_bits() & 0x7fff_ffff;
    let infinite = magnitude == 0x7f80_0000;
    let normal = ((magnitude + (random & 0x1fff)) >> 13).saturating_sub(112 << 10);
    // In units of the smallest half, plus a random share of one.
    let share = (random & 0x1fff) as f32 / 8192.0;
    let small = (f32::from_bits(magnitude).min(1.0) * f32::from_bits((127 + 24) << 23) + share) as u32;
    join_f16(wide, if infinite { 0x7c00 } else { normal }, small)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> impl Iterator<Item = f32> {
        let some = (0..=u32::MAX).step_by(65_521 * 3).map(f32::from_bits);
        let steps = (0..2000).map(|at| (at as f32 * 0.37).sin() * 2f32.powi(at % 40 - 28));
        some.chain(steps).chain([
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            65_504.0,
            65_519.9,
            65_520.0,
            1e30,
        ])
    }

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    #[test]
    fn all_halves_widen_to_themselves() {
        for bits in 0..=u16::MAX {
            assert!(same(widen_f16(f16::from_bits(bits)), f16::from_bits(bits).to_f32()), "f16 {bits:x}");
            assert!(same(widen_bf16(bf16::from_bits(bits)), bf16::from_bits(bits).to_f32()), "bf16 {bits:x}");
        }
    }

    #[test]
    fn nearest_is_what_the_half_crate_says() {
        for wide in samples() {
            assert!(same(nearest_f16(wide).to_f32(), f16::from_f32(wide).to_f32()), "{wide:e}");
            assert!(same(nearest_bf16(wide).to_f32(), bf16::from_f32(wide).to_f32()), "{wide:e}");
        }
    }

    #[test]
    fn random_rounding_goes_to_a_neighbour_and_keeps_what_is_exact() {
        for (at, wide) in samples().enumerate() {
            let random = mix(at as u64) as u32;
            let (half, brain) = (stochastic_f16(wide, random), stochastic_bf16(wide, random));
            let near = |found: f32, nearest: f32, spacing: f64| {
                same(found, nearest)
                    || f64::from((found - wide).abs()) <= spacing
                    || (found.is_infinite() && wide.abs() > 65_000.0)
            };
            let spacing = 2f64.powi((wide.abs().log2().floor() as i32).clamp(-14, 127) - 10);
            assert!(near(half.to_f32(), f16::from_f32(wide).to_f32(), spacing), "{wide:e} {half:e}");
            let spacing = 2f64.powi((wide.abs().log2().floor() as i32).clamp(-126, 127) - 7);
            assert!(near(brain.to_f32(), bf16::from_f32(wide).to_f32(), spacing), "{wide:e} {brain:e}");
        }
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            for random in [0, 0x1fff, u32::MAX] {
                assert!(same(stochastic_f16(half.to_f32(), random).to_f32(), half.to_f32()));
                assert!(same(stochastic_bf16(brain.to_f32(), random).to_f32(), brain.to_f32()));
            }
        }
    }

    #[test]
    fn random_rounding_is_right_on_average() {
        for value in [0.1f32, -1.7, 3e-6, 1e-7, 300.3] {
            let (mut half, mut brain) = (0.0, 0.0);
            for step in 0..64 {
                let dice = Dice::new(Rounding::Stochastic { seed: 7 }, step, 0, 5);
                let mut halves = [f16::ZERO; 4096];
                f16::close(&mut halves, &[value; 4096], dice);
                half += halves.iter().map(|x| f64::from(x.to_f32())).sum::<f64>();
                let mut brains = [bf16::ZERO; 4096];
                bf16::close(&mut brains, &[value; 4096], dice);
                brain += brains.iter().map(|x| f64::from(x.to_f32())).sum::<f64>();
            }
            let count = 64.0 * 4096.0;
            let spacing = f64::from(value.abs()).max(6e-5);
            assert!(
                (half / count - f64::from(value)).abs() < spacing / 1024.0 / 50.0,
                "{value} {}",
                half / count
            );
            assert!(
                (brain / count - f64::from(value)).abs() < spacing / 128.0 / 50.0,
                "{value} {}",
                brain / count
            );
        }
    }
}
