//! Floats that depend on a seed.

/// Floats in -1..1 that depend on the seed.
pub fn floats(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}
