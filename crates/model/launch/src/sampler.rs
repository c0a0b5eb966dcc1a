//! Random indices of a distribution.

use crate::{Indices, zipf};

/// Prime by which ranks are scattered over rows, so that popular rows are not neighbours; and the place of
/// the first rank. The same as in `python/steptime/measure/tensors.py`.
const SCATTER: u64 = 2_654_435_761;
const SCATTER_FROM: u64 = 12_345;

/// Draws rows of a table by the distribution of [`Indices`].
///
/// Drawn rows have the frequencies of [`Popularity`](crate::Popularity): for `zipf:A` the first ranks by
/// their weights, the others by inverting the integral between the midpoints around them. Ranks are scattered
/// over the table, except for `folded-zipf:A`, whose rank `r` is row `r % E` as in numpy.
#[derive(Debug, Clone)]
pub struct Sampler {
    rows: u64,
    law: Law,
}

#[derive(Debug, Clone)]
enum Law {
    Uniform,
    Zipf(CutZipf),
    FoldedZipf {
        power: f64,
    },
    /// Cumulative share of ranks.
    Counted(Vec<f64>),
    /// Groups of ranks: cumulative share, first rank, and number of ranks.
    Grouped(Vec<(f64, f64, f64)>),
}

/// Zipf's law that ends at the last row.
#[derive(Debug, Clone)]
struct CutZipf {
    power: f64,
    /// Cumulative weights of the first ranks.
    single: Vec<f64>,
    /// Weight of all ranks.
    total: f64,
}

impl Sampler {
    /// Sampler for a table of `rows` rows, at least one.
    #[must_use]
    pub fn new(indices: &Indices, rows: u64) -> Sampler {
        let rows = rows.max(1);
        let law = match indices {
            Indices::Unknown | Indices::Uniform => Law::Uniform,
            Indices::Zipf(power) => Law::Zipf(CutZipf::new(*power, rows as f64)),
            Indices::FoldedZipf(power) => Law::FoldedZipf { power: *power },
            Indices::Histogram(shares) => {
                let mut sum = 0.0;
                let up_to = |&share: &f32| {
                    sum += f64::from(share);
                    sum
                };
                Law::Counted(shares.iter().map(up_to).collect())
            }
            Indices::Counts(counts) => {
                let (mut share, mut ranks) = (0.0, 0.0);
                let group = |(of_group, lookups): (f64, f64)| {
                    let first = ranks;
                    (share, ranks) = (share + lookups, ranks + of_group);
                    (share, first, of_group)
                };
                Law::Grouped(counts.weights(rows as f64).into_iter().map(group).collect())
            }
        };
        Sampler { rows, law }
    }

    /// Draws a row from a source of 64 random bits at a time.
    pub fn row(&self, mut bits: impl FnMut() -> u64) -> u64 {
        match &self.law {
            Law::Uniform => self.evenly(&mut bits),
            Law::Zipf(law) => self.scattered(law.rank(unit(&mut bits), self.rows)),
            Law::FoldedZipf { power } => endless(*power, &mut bits) % self.rows,
            Law::Grouped(groups) if groups.is_empty() => self.evenly(&mut bits),
            Law::Grouped(groups) => {
                let wanted = unit(&mut bits) * groups[groups.len() - 1].0;
                let place = groups.partition_point(|group| group.0 <= wanted).min(groups.len() - 1);
                let (_, first, of_group) = groups[place];
                self.scattered((first + unit(&mut bits) * of_group) as u64)
            }
            Law::Counted(up_to) if up_to.is_empty() => self.evenly(&mut bits),
            Law::Counted(up_to) => {
                // Each count is the share of equally many rows.
                let all = up_to[up_to.len() - 1];
                let wanted = unit(&mut bits) * all;
                let place = up_to.partition_point(|&sum| sum <= wanted).min(up_to.len() - 1);
                let width = self.rows as f64 / up_to.len() as f64;
                let within = unit(&mut bits) * width;
                self.scattered((place as f64 * width + within) as u64)
            }
        }
    }

    fn evenly(&self, bits: &mut impl FnMut() -> u64) -> u64 {
        ((u128::from(bits()) * u128::from(self.rows)) >> 64) as u64
    }

    /// Row of a rank that counts from 0.
    fn scattered(&self, rank: u64) -> u64 {
        let (rank, rows) = (rank.min(self.rows - 1), self.rows);
        if rows.is_multiple_of(SCATTER) {
            return rank;
        }
        ((u128::from(rank) * u128::from(SCATTER) + u128::from(SCATTER_FROM)) % u128::from(rows)) as u64
    }
}

impl CutZipf {
    fn new(power: f64, rows: f64) -> CutZipf {
        let ranks = zipf::single_ranks(rows);
        let mut sum = 0.0;
        let up_to = |rank| {
            sum += zipf::weight(rank, power);
            sum
        };
        let single: Vec<f64> = (1..=ranks).map(up_to).collect();
        let total = sum + zipf::integral(f64::from(ranks) + 0.5, rows + 0.5, power);
        CutZipf { power, single, total }
    }

    /// Rank, from 0, at a cumulative share of all weights.
    fn rank(&self, share: f64, rows: u64) -> u64 {
        let wanted = share * self.total;
        let ranks = self.single.len();
        let counted = self.single.last().copied().unwrap_or(0.0);
        if wanted < counted || ranks as u64 >= rows {
            return self.single.partition_point(|&sum| sum <= wanted) as u64;
        }
        let end = zipf::end(ranks as f64 + 0.5, wanted - counted, self.power);
        ((end.round() as u64).max(ranks as u64 + 1) - 1).min(rows - 1)
    }
}

/// Draws a rank from 1 on in proportion to `rank^-power`: Devroye's rejection (1986, chapter X.6.1), as in numpy.
fn endless(power: f64, bits: &mut impl FnMut() -> u64) -> u64 {
    let power = power - 1.0;
    let b = 2.0_f64.powf(power);
    loop {
        let (u, v) = (unit(bits), unit(bits));
        let rank = u.powf(-1.0 / power).floor();
        if rank >= zipf::ENDLESS {
            continue;
        }
        let t = (1.0 + 1.0 / rank).powf(power);
        if v * rank * (t - 1.0) / (b - 1.0) <= t / b {
            return rank as u64;
        }
    }
}

/// Draws a number strictly between 0 and 1.
fn unit(bits: &mut impl FnMut() -> u64) -> f64 {
    ((bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Popularity, SplitMix};

    fn random(seed: u64) -> impl FnMut() -> u64 {
        let mut random = SplitMix::new(seed);
        move || random.bits()
    }

    fn counts(indices: &Indices, rows: u64, draws: usize) -> Vec<usize> {
        let (sampler, mut bits) = (Sampler::new(indices, rows), random(7));
        let mut counts = vec![0; rows as usize];
        (0..draws).for_each(|_| counts[sampler.row(&mut bits) as usize] += 1);
        counts
    }

    /// Drawn frequencies against the law `r^-A / sum`, for ranks counted one by one and for integrated ones.
    #[test]
    fn zipf_is_drawn_as_its_name_says() {
        const DRAWS: usize = 2_000_000;
        for power in [0.0, 0.6, 1.0, 1.05, 1.2, 2.5] {
            let rows = 1000_u32;
            let mut counts = counts(&Indices::Zipf(power), u64::from(rows), DRAWS);
            let sampler = Sampler::new(&Indices::Zipf(power), u64::from(rows));
            let mut drawn = |ranks: std::ops::RangeInclusive<u32>| {
                let of =
                    |rank: u32| std::mem::take(&mut counts[sampler.scattered(u64::from(rank) - 1) as usize]);
                ranks.map(of).sum::<usize>() as f64 / DRAWS as f64
            };
            let total: f64 = (1..=rows).map(|rank| f64::from(rank).powf(-power)).sum();
            for ranks in [1..=1, 2..=2, 3..=8, 9..=9, 10..=20, 21..=200, 201..=1000] {
                let exact: f64 = ranks.clone().map(|rank| f64::from(rank).powf(-power)).sum::<f64>() / total;
                let drawn = drawn(ranks.clone());
                // Four standard deviations, plus the error of the integrals.
                let within = 4.0 * (exact / DRAWS as f64).sqrt() + 2e-3 * exact;
                assert!((drawn - exact).abs() < within, "{power} {ranks:?}: {drawn} for {exact}");
            }
        }
    }

    /// Drawn rows against the closed form of the predictions.
    #[test]
    fn as_many_different_rows_are_drawn_as_the_closed_form_counts() {
        let counted = Indices::counted("1\n1\n1\n2\n3\n3", 9).unwrap();
        let (rows, draws) = (100_000, 50_000);
        for indices in [
            Indices::Uniform,
            Indices::Zipf(0.6),
            Indices::Zipf(1.05),
            Indices::Zipf(1.2),
            Indices::FoldedZipf(1.05),
            Indices::FoldedZipf(1.2),
            counted,
        ] {
            let counts = counts(&indices, rows, draws);
            let popularity = Popularity::new(rows as f64, &indices);
            let drawn = counts.iter().filter(|&&count| count > 0).count() as f64;
            let distinct = popularity.distinct(draws as f64);
            assert!((drawn / distinct - 1.0).abs() < 0.02, "{indices}: {drawn} for {distinct}");
            let most = counts.iter().max().copied().unwrap_or(0) as f64;
            let largest = popularity.largest_share() * draws as f64;
            assert!((most - largest).abs() < 5.0 * largest.sqrt() + 8.0, "{indices}: {most} for {largest}");
        }
    }

    /// Different rows of 262,144 lookups in a million rows, as drawn by `numpy.random.zipf`.
    #[test]
    fn folded_zipf_is_as_repetitive_as_numpy() {
        for (power, numpy, within) in [(1.2, 0.164, 0.003), (1.05, 0.55, 0.01)] {
            let counts = counts(&Indices::FoldedZipf(power), 1_000_000, 262_144);
            let share = counts.iter().filter(|&&count| count > 0).count() as f64 / 262_144.0;
            assert!((share - numpy).abs() < within, "{power}: {share}");
        }
    }

    #[test]
    fn ranks_are_scattered_one_to_one() {
        for rows in [1, 2, 10, 12_345] {
            let sampler = Sampler::new(&Indices::Zipf(1.0), rows);
            let mut seen = vec![false; rows as usize];
            (0..rows).for_each(|rank| seen[sampler.scattered(rank) as usize] = true);
            assert!(seen.iter().all(|&seen| seen), "{rows}");
        }
        assert_eq!(Sampler::new(&Indices::Zipf(1.0), SCATTER).scattered(5), 5);
    }

    proptest! {
        #[test]
        fn rows_stay_inside(rows in 1_u64.., power in 0.0_f64..8.0, seed: u64) {
            let counted = Indices::Histogram([0.5, 0.5].into());
            let folded = Indices::FoldedZipf(power.max(1.01));
            for indices in [Indices::Unknown, Indices::Zipf(power), folded, counted] {
                let (sampler, mut bits) = (Sampler::new(&indices, rows), random(seed));
                for _ in 0..8 {
                    prop_assert!(sampler.row(&mut bits) < rows, "{indices}");
                }
            }
        }
    }
}
