//! Random indices.

use crate::random::Random;
use crate::{Error, Init};

/// Distribution of row accesses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Draw {
    /// Uniform: every row equally often.
    Uniform,
    /// Zipf, like `numpy.random.zipf(a) % E`: rank r has a probability proportional to r^-a, without an upper limit;
    /// ranks beyond the table wrap around into it.
    Zipf(f64),
}

impl Draw {
    /// Converts a given distribution.
    pub fn from_init(init: Init) -> Result<Draw, Error> {
        match init {
            Init::Uniform => Ok(Draw::Uniform),
            Init::Zipf(exponent) if exponent > 1.0 => Ok(Draw::Zipf(exponent)),
            Init::Zipf(exponent) => Err(Error::Exponent { exponent }),
        }
    }

    /// Text for the report.
    pub fn name(self) -> String {
        match self {
            Draw::Uniform => "uniform".into(),
            Draw::Zipf(exponent) => format!("zipf:{exponent}"),
        }
    }

    /// An index below `rows`.
    pub fn index(self, random: &mut Random, rows: usize) -> i64 {
        let mut unit = || ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        match self {
            Draw::Uniform => ((unit() * rows as f64) as usize).min(rows - 1) as i64,
            Draw::Zipf(exponent) => {
                // Devroye's rejection, 1986, chapter X.6.1.
                let power = exponent - 1.0;
                let b = 2.0_f64.powf(power);
                loop {
                    let (u, v) = (unit(), unit());
                    let rank = u.powf(-1.0 / power).floor();
                    if rank >= 9e18 {
                        continue;
                    }
                    let t = (1.0 + 1.0 / rank).powf(power);
                    if v * rank * (t - 1.0) / (b - 1.0) <= t / b {
                        return (rank as u64 % rows as u64) as i64;
                    }
                }
            }
        }
    }
}

/// Number of distinct indices among these, which are all below `rows`.
pub fn distinct(indices: &[i64], rows: usize) -> usize {
    let mut seen = vec![0_u64; rows.div_ceil(64)];
    for &index in indices {
        seen[index as usize / 64] |= 1 << (index % 64);
    }
    seen.iter().map(|word| word.count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_indices_are_as_repetitive_as_those_of_numpy() {
        // 262,144 lookups of a million rows: 0.164 distinct at 1.2.
        let mut random = Random::new(1);
        let indices: Vec<i64> = (0..262_144).map(|_| Draw::Zipf(1.2).index(&mut random, 1_000_000)).collect();
        let share = distinct(&indices, 1_000_000) as f64 / 262_144.0;
        assert!((share - 0.164).abs() < 0.003, "{share}");
        let uniform: Vec<i64> = (0..262_144).map(|_| Draw::Uniform.index(&mut random, 1_000_000)).collect();
        let share = distinct(&uniform, 1_000_000) as f64 / 262_144.0;
        assert!((share - 0.880).abs() < 0.003, "{share}");
    }
}
