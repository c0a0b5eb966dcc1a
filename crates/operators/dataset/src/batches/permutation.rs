//! Permutations of `0..n` that are computed, not stored.

use steptime_launch::SplitMix;

/// Rounds of a permutation; fewer leave neighbours correlated.
const ROUNDS: usize = 6;

/// A pseudo-random permutation of `0..n`, determined by a key.
///
/// A bijection of the next power of two (multiplication by an odd number, xor with the upper bits, addition) is applied
/// until its value is below `n`.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    /// Factor and summand of each round.
    rounds: [(u64, u64); ROUNDS],
}

impl Permutation {
    pub(crate) fn new(n: u64, key: u64) -> Permutation {
        let bits = (u64::BITS - n.saturating_sub(1).leading_zeros()).max(1);
        let mask = u64::MAX >> (u64::BITS - bits);
        let mut state = key;
        let mut draw = || {
            state = SplitMix::new(state).bits();
            state
        };
        let rounds = std::array::from_fn(|_| (draw() | 1, draw()));
        Permutation { n, mask, shift: bits.div_ceil(2), rounds }
    }

    /// The value at a place below `n`.
    pub(crate) fn at(&self, place: u64) -> u64 {
        let mut value = place;
        loop {
            for (factor, summand) in self.rounds {
                value = value.wrapping_mul(factor).wrapping_add(summand) & self.mask;
                value ^= value >> self.shift;
            }
            if value < self.n {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_value_comes_once(n in 1_u64..3000, key: u64) {
            let permutation = Permutation::new(n, key);
            let mut seen = vec![false; n as usize];
            (0..n).for_each(|place| seen[permutation.at(place) as usize] = true);
            prop_assert!(seen.iter().all(|&seen| seen));
        }
    }

    /// Each pair (place, value), and each pair of neighbours' values, is as frequent as any other over many keys.
    #[test]
    fn places_and_values_are_independent() {
        const KEYS: u64 = 20_000;
        for n in [5_u64, 16, 23] {
            let pairs = (n * n) as usize;
            let (mut at, mut next) = (vec![0_u32; pairs], vec![0_u32; pairs]);
            for key in 0..KEYS {
                let permutation = Permutation::new(n, key);
                let values: Vec<u64> = (0..n).map(|place| permutation.at(place)).collect();
                for (place, &value) in (0..n).zip(&values) {
                    at[(place * n + value) as usize] += 1;
                }
                values.windows(2).for_each(|pair| next[(pair[0] * n + pair[1]) as usize] += 1);
            }
            let worst = |counts: &[u32], expected: f64, counted: &dyn Fn(usize) -> bool| {
                let counts = counts.iter().enumerate().filter(|(pair, _)| counted(*pair));
                counts.map(|(_, &c)| (f64::from(c) / expected - 1.0).abs()).fold(0.0, f64::max)
            };
            let each = KEYS as f64 / n as f64;
            assert!(worst(&at, each, &|_| true) < 0.2, "{n}: {}", worst(&at, each, &|_| true));
            // n - 1 pairs of neighbours a key, over n (n - 1) pairs of different values.
            let unequal = |pair: usize| pair / n as usize != pair % n as usize;
            assert!(worst(&next, each, &unequal) < 0.25, "{n}: {}", worst(&next, each, &unequal));
        }
    }
}
