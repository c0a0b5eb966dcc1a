//! Random operands: the same in each run.

use rayon::prelude::*;

use crate::Init;

/// A generator of 64 random bits at a time (SplitMix64).
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number in 0..1.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `0..rows`, with the given distribution.
    pub fn index(&mut self, init: Init, rows: usize) -> usize {
        match init {
            Init::Uniform => ((u128::from(self.bits()) * rows as u128) >> 64) as usize,
            Init::Zipf(exponent) => {
                // The rank by inverting the distribution as if ranks were continuous; then ranks are scattered over
                // the table, by a prime that shares no factor with the rows.
                let (end, u) = (rows as f64 + 1.0, self.unit());
                let rank = if (exponent - 1.0).abs() < 1e-9 {
                    end.powf(u)
                } else {
                    let power = 1.0 - exponent;
                    (1.0 + u * (end.powf(power) - 1.0)).powf(1.0 / power)
                };
                let rank = (rank as usize).clamp(1, rows) - 1;
                (rank as u128 * 1_000_000_007 % rows as u128) as usize
            }
        }
    }
}

/// Fills with values in -1..1, on all threads: the pages of memory are first touched here.
pub fn fill(values: &mut [f32], seed: u64) {
    const CHUNK: usize = 1 << 16;
    values.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, values)| {
        let mut random = Random::new(seed ^ ((chunk as u64 + 1) << 20));
        for pair in values.chunks_mut(2) {
            let bits = random.bits();
            for (value, bits) in pair.iter_mut().zip([bits as i32, (bits >> 32) as i32]) {
                *value = bits as f32 / (1u32 << 31) as f32;
            }
        }
    });
}

/// `count` values in -1..1.
pub fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut values = vec![0.0; count];
    fill(&mut values, seed);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_stay_inside_and_follow_their_distribution() {
        for (init, rows) in [(Init::Uniform, 1000), (Init::Zipf(1.0), 1000), (Init::Zipf(1.2), 1000)] {
            let mut random = Random::new(7);
            let mut counts = vec![0usize; rows];
            (0..100_000).for_each(|_| counts[random.index(init, rows)] += 1);
            counts.sort_unstable();
            let most = counts[rows - 1];
            assert_eq!(most < 200, init == Init::Uniform, "{init}: {most}");
        }
        assert_eq!(Random::new(1).index(Init::Zipf(1.05), 1), 0);
    }

    #[test]
    fn values_are_spread_over_their_range() {
        let values = values(200_000, 3);
        let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.01 && values.iter().all(|value| value.abs() <= 1.0));
        assert!(values[0] != values[1 << 16]);
    }
}
