//! Functions that vectorize: no branches, no calls, errors of a few units in the last place.
//!
//! With `FMA`, products and sums are fused: that is fast only where the processor has the instruction, so plain code
//! does without. Coefficients are least-maximum fits made for these intervals.

use std::f32::consts::LOG2_E;

/// `a b + c`.
#[inline(always)]
pub(crate) fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// A polynomial with these coefficients, the constant first.
#[inline(always)]
fn polynomial<const FMA: bool, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    let mut at = N - 1;
    while at > 0 {
        at -= 1;
        sum = mul_add::<FMA>(sum, x, coefficients[at]);
    }
    sum
}

/// `e^x`: `2^n e^r` with `r` within half of `ln 2`. Zero and infinity beyond the range of `f32`.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    /// Adding this number leaves the nearest integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    /// `ln 2` with zeros at the end, so that its products with small integers are exact, and the remainder.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    let x = x.clamp(-104.0, 89.0);
    let rounded = mul_add::<FMA>(x, LOG2_E, ROUND);
    let n = rounded - ROUND;
    let r = mul_add::<FMA>(n, -LN_2.1, mul_add::<FMA>(n, -LN_2.0, x));
    let rest = polynomial::<FMA, 5>(r, [0.5, 0.166_665_73, 0.041_666_362, 0.008_363_776, 0.001_394_216_1]);
    let power = mul_add::<FMA>(r * r, rest, r) + 1.0;
    // In two halves: the whole power of two may be out of range where the result is not.
    let n = rounded.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = n >> 1;
    let scale = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    power * scale(half) * scale(n.wrapping_sub(half))
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<FMA>(-x))
}

/// `tanh(x)`: by powers near 0, where the other form would cancel.
#[inline(always)]
pub(crate) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let size = x.abs();
    let power = exp::<FMA>(-2.0 * size);
    let far = (1.0 - power) / (1.0 + power);
    let square = size * size;
    let series = [-0.333_333_28, 0.133_327_95, -0.053_854_07, 0.021_010_078, -0.006_113_188_3];
    let near = mul_add::<FMA>(size * square, polynomial::<FMA, 5>(square, series), size);
    (if size < 0.625 { near } else { far }).copysign(x)
}

/// The normal distribution's cumulative function: `e^(-x^2/2)` times a polynomial of `1 / (1 + 0.3 |x|)` below zero, so
/// that the lower tail is exact in proportion, and one minus that above.
#[inline(always)]
pub(crate) fn normal_cdf<const FMA: bool>(x: f32) -> f32 {
    let size = x.abs();
    let k = 1.0 / mul_add::<FMA>(size, 0.3, 1.0);
    let ratio = [
        0.119_629_3,
        0.120_753_97,
        0.099_913_41,
        0.128_561_92,
        -0.053_684_246,
        0.206_354_2,
        -0.157_203_5,
        0.035_674_877,
    ];
    let tail = exp::<FMA>(size * size * -0.5) * (k * polynomial::<FMA, 8>(k, ratio));
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// `ln(1 + u)` for `u` in 0..=1.
#[inline(always)]
pub(crate) fn ln_1p<const FMA: bool>(u: f32) -> f32 {
    let series = [
        1.0,
        -0.499_999_14,
        0.333_302_77,
        -0.249_573_47,
        0.196_924_55,
        -0.153_532_77,
        0.106_845_37,
        -0.057_759_143,
        0.020_277_77,
        -0.003_338_731,
    ];
    u * polynomial::<FMA, 10>(u, series)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error, relative to the exact value or to `floor`, over many points.
    fn worst(
        range: std::ops::Range<f32>,
        floor: f64,
        ours: impl Fn(f32) -> f32,
        exact: impl Fn(f64) -> f64,
    ) -> f64 {
        let points = if cfg!(miri) { 50 } else { 100_000 };
        (0..=points)
            .map(|at| range.start + (range.end - range.start) * (at as f32 / points as f32))
            .map(|x| (f64::from(ours(x)) - exact(x.into())).abs() / exact(x.into()).abs().max(floor))
            .fold(0.0, f64::max)
    }

    fn check<const FMA: bool>() {
        let sigmoid_exact = |x: f64| 1.0 / (1.0 + (-x).exp());
        assert!(worst(-87.0..88.7, 0.0, exp::<FMA>, f64::exp) < 2e-7);
        assert!(worst(-87.0..88.0, 0.0, sigmoid::<FMA>, sigmoid_exact) < 4e-7);
        assert!(worst(-10.0..10.0, 0.0, tanh::<FMA>, f64::tanh) < 3e-7);
        assert!(worst(0.0..1.0, 1e-30, ln_1p::<FMA>, f64::ln_1p) < 3e-7);
        assert_eq!(exp::<FMA>(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp::<FMA>(89.0), f32::INFINITY);
        assert_eq!(exp::<FMA>(f32::NEG_INFINITY), 0.0);
        assert_eq!((exp::<FMA>(0.0), tanh::<FMA>(0.0), sigmoid::<FMA>(0.0)), (1.0, 0.0, 0.5));
        assert_eq!((tanh::<FMA>(-99.0), sigmoid::<FMA>(99.0), normal_cdf::<FMA>(99.0)), (-1.0, 1.0, 1.0));
        assert_eq!((sigmoid::<FMA>(-200.0), normal_cdf::<FMA>(f32::NEG_INFINITY)), (0.0, 0.0));
        assert!(exp::<FMA>(-100.0) > 0.0 && exp::<FMA>(-100.0) < 4e-44);
        for function in [exp::<FMA>, sigmoid::<FMA>, tanh::<FMA>, normal_cdf::<FMA>, ln_1p::<FMA>] {
            assert!(function(f32::NAN).is_nan());
        }
    }

    #[test]
    fn functions_are_within_some_units_of_the_last_place() {
        check::<false>();
        check::<true>();
    }

    /// Values of `scipy.stats.norm.cdf`.
    #[test]
    fn the_normal_distribution_matches_known_values() {
        let known = [
            (-6.0, 9.865_876_450_376_98e-10),
            (-3.0, 1.349_898_031_630_094_5e-3),
            (-1.0, 0.158_655_253_931_457_05),
            (-0.1, 0.460_172_162_722_971),
            (0.0, 0.5),
            (0.5, 0.691_462_461_274_013_1),
            (2.0, 0.977_249_868_051_820_8),
        ];
        for (x, exact) in known {
            for ours in [normal_cdf::<false>(x), normal_cdf::<true>(x)] {
                assert!((f64::from(ours) - exact).abs() < 1.5e-6 * exact, "{x}: {ours} is not {exact}");
            }
        }
    }
}
