//! Activations that products apply to their result, and their derivatives.

use super::kernel::{Loop, multiply_add, widen};
use crate::arch::Arch;

/// An elementwise function after a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// No function.
    #[default]
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
}

impl Activation {
    /// Returns the value at `x`.
    #[must_use]
    pub fn value(self, x: f32) -> f32 {
        match self {
            Activation::Identity => x,
            Activation::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        }
    }

    /// Returns the slope where the value is `y`.
    #[must_use]
    pub fn slope(self, y: f32) -> f32 {
        match self {
            Activation::Identity => 1.0,
            Activation::Relu => f32::from(u8::from(y > 0.0)),
            Activation::Sigmoid => y * (1.0 - y),
        }
    }

    /// Replaces each sum by the activation's value.
    pub(crate) fn apply(self, arch: Arch, values: &mut [f32]) {
        match self {
            Activation::Identity => {}
            Activation::Relu => values.iter_mut().for_each(|value| *value = self.value(*value)),
            Activation::Sigmoid => widen(arch, Sigmoids(values)),
        }
    }

    /// Multiplies gradients by the slope at each output. Where a rectifier is closed, the gradient becomes 0, whatever
    /// it was.
    #[inline(always)]
    pub(crate) fn scale(self, gradients: &mut [f32], outputs: &[f32]) {
        let pairs = gradients.iter_mut().zip(outputs);
        match self {
            Activation::Identity => {}
            Activation::Relu => {
                pairs.for_each(|(gradient, &y)| *gradient = if y > 0.0 { *gradient } else { 0.0 })
            }
            Activation::Sigmoid => pairs.for_each(|(gradient, &y)| *gradient *= y * (1.0 - y)),
        }
    }
}

struct Sigmoids<'a>(&'a mut [f32]);

impl Loop for Sigmoids<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for value in self.0 {
            *value = 1.0 / (1.0 + exp::<FUSED>(-*value));
        }
    }
}

/// `exp(x)` to about one unit in the last place, without branches, so that loops over it use vectors: x = n ln 2 + r, a
/// polynomial in r (the Taylor series, |r| <= ln 2 / 2), and n in the exponent. Far out, where a sigmoid is 0 or 1, the
/// result is clamped.
#[inline(always)]
fn exp<const FUSED: bool>(x: f32) -> f32 {
    /// Adding this number rounds to an integer, in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = if x > 88.0 { 88.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = multiply_add::<FUSED>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 in two parts, the first with few bits, so that n times it is exact.
    let r = multiply_add::<FUSED>(n, -0.693_359_4, x);
    let r = multiply_add::<FUSED>(n, 2.121_944_4e-4, r);
    let mut sum = 1.0 / 5040.0;
    for term in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = multiply_add::<FUSED>(sum, r, term);
    }
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    sum * f32::from_bits(exponent << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigmoids_are_those_of_f64() {
        let xs: Vec<f32> = (-4000..4000).map(|at| at as f32 / 37.0).collect();
        for arch in Arch::all() {
            let mut values = xs.clone();
            Activation::Sigmoid.apply(arch, &mut values);
            for (x, value) in xs.iter().zip(&values) {
                let exact = 1.0 / (1.0 + (-f64::from(*x)).exp());
                assert!(
                    (f64::from(*value) - exact).abs() <= 4e-7 * exact + 1e-38,
                    "{arch:?}: {x}: {value} {exact}"
                );
            }
            let mut odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
            Activation::Sigmoid.apply(arch, &mut odd);
            assert!(odd[0].is_nan() && odd[1] == 1.0 && odd[2] < 1e-37);
        }
    }
}
