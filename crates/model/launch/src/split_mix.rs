//! Pseudorandom bits by SplitMix64 (Steele et al. 2014): a counter with mixed bits. The same seed gives the same bits everywhere.

/// Increment of the counter: 2^64 divided by the golden ratio, odd.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles 64 bits one to one: the finalizer of SplitMix64.
#[must_use]
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A sequence of pseudorandom bits.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// The sequence of several keys in order.
    #[must_use]
    pub fn from_keys(keys: &[u64]) -> SplitMix {
        let mut random = SplitMix(0);
        for key in keys {
            random.0 ^= key;
            random.0 = random.bits();
        }
        random
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(INCREMENT);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix;

    /// Bits of the reference implementation for the seed 1234567.
    #[test]
    fn bits_are_those_of_the_reference() {
        let mut random = SplitMix::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected.map(|_| random.bits()), expected);
    }
}
