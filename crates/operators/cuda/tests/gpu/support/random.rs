//! Random numbers of the tests: the same for the same seed.

/// A linear congruential generator.
pub struct Random(pub u64);

impl Random {
    /// A number in `0..end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }

    /// A number in -1..1.
    pub fn value(&mut self) -> f32 {
        self.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0
    }
}
