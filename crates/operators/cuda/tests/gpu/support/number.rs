//! Numbers of the types that tensors have.

use half::bf16;
use steptime_cuda::Float;

use super::random::Random;

/// A number of a type, and its value.
pub trait Number: Float + PartialEq + std::fmt::Debug {
    /// The nearest number of the type.
    fn rounded(value: f32) -> Self;

    /// The value in 32 bits.
    fn value(self) -> f32;

    /// The bits of the value in 32 bits, in which zeros differ by their signs.
    fn bits(self) -> u32 {
        self.value().to_bits()
    }
}

impl Number for f32 {
    fn rounded(value: f32) -> f32 {
        value
    }

    fn value(self) -> f32 {
        self
    }
}

impl Number for bf16 {
    fn rounded(value: f32) -> bf16 {
        bf16::from_f32(value)
    }

    fn value(self) -> f32 {
        self.to_f32()
    }
}

/// Numbers in -1..1.
pub fn numbers<T: Number>(count: usize, random: &mut Random) -> Vec<T> {
    (0..count).map(|_| T::rounded(random.value())).collect()
}
