//! Popularity of rows, in closed form.

use smallvec::SmallVec;

use crate::{Indices, zipf};

/// Access frequencies of rows: groups of rows that are equally popular.
#[derive(Debug, Clone, PartialEq)]
pub struct Popularity {
    groups: SmallVec<[Group; 64]>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Group {
    rows: f64,
    /// `-ln(1 - p)` of the access probability of one of its rows: about the probability itself.
    rate: f64,
    /// Probability of all its rows together.
    share: f64,
}

/// Growth factor of the later groups of ranks.
const GROUP_GROWTH: f64 = 1.4;

impl Popularity {
    /// Popularity of `rows` rows under a distribution. An unknown one is treated as uniform.
    #[must_use]
    pub fn new(rows: f64, indices: &Indices) -> Popularity {
        let rows = rows.max(1.0);
        let mut weighted: SmallVec<[(f64, f64); 64]> = SmallVec::new();
        match indices {
            Indices::Unknown | Indices::Uniform => weighted.push((rows, rows)),
            Indices::Zipf(power) => zipf(rows, *power, &mut weighted),
            Indices::FoldedZipf(power) => {
                zipf(rows, *power, &mut weighted);
                // Ranks beyond the table wrap around evenly.
                let beyond = zipf::integral(rows + 0.5, zipf::ENDLESS, *power);
                weighted.iter_mut().for_each(|(of_group, weight)| *weight += beyond * *of_group / rows);
            }
            Indices::Histogram(shares) => {
                let width = rows / (shares.len().max(1) as f64);
                let usable = shares.iter().map(|&share| f64::from(share)).filter(|&share| share > 0.0);
                weighted.extend(usable.map(|share| (width, share)));
            }
            Indices::Counts(counts) => weighted.extend(counts.weights(rows)),
        }
        let total: f64 = weighted.iter().map(|group| group.1).sum();
        if !(total > 0.0 && total.is_finite()) {
            return Popularity { groups: std::iter::once(Group::new(rows, 1.0)).collect() };
        }
        Popularity {
            groups: weighted.iter().map(|&(rows, weight)| Group::new(rows, weight / total)).collect(),
        }
    }

    /// Expected number of different rows among `lookups` lookups.
    #[must_use]
    pub fn distinct(&self, lookups: f64) -> f64 {
        let seen = |group: &Group| group.rows * -(-lookups * group.rate).exp_m1();
        self.groups.iter().map(seen).sum::<f64>().min(lookups)
    }

    /// Share of lookups that go to the most popular row.
    #[must_use]
    pub fn largest_share(&self) -> f64 {
        self.groups.iter().map(|group| group.share / group.rows.max(1.0)).fold(0.0, f64::max)
    }

    /// Share of lookups that go to rows with an access probability above `probability`.
    #[must_use]
    pub fn share_above(&self, probability: f64) -> f64 {
        let above = |group: &&Group| group.share > probability * group.rows;
        self.groups.iter().filter(above).map(|group| group.share).sum::<f64>().min(1.0)
    }

    /// Probability that a lookup's row is not among those of the last `window` lookups.
    pub(crate) fn missing(&self, window: f64) -> f64 {
        self.groups.iter().map(|group| group.share * (-window * group.rate).exp()).sum()
    }

    /// Number of lookups after which a cache is full, at most `most`.
    pub(crate) fn window(&self, row_bytes: f64, written: f64, size: f64, most: f64) -> f64 {
        let used = |k: f64| self.distinct(k) * row_bytes + k * written;
        if used(most) <= size {
            return most;
        }
        // `used` grows and is concave: the chord from below and the tangent from above close in on its root.
        let (mut low, mut high) = (0.0, most);
        let mut at_low = 0.0;
        let mut at_high = used(most);
        for _ in 0..24 {
            let chord = low + (high - low) * (size - at_low) / (at_high - at_low).max(1e-9);
            let guess = 0.5 * chord + 0.25 * (low + high);
            for k in [chord, guess] {
                if k <= low || k >= high {
                    continue;
                }
                let at = used(k);
                if at < size {
                    (low, at_low) = (k, at);
                } else {
                    (high, at_high) = (k, at);
                }
            }
            if high - low <= 1e-4 * high {
                break;
            }
        }
        0.5 * (low + high)
    }
}

impl Group {
    fn new(rows: f64, share: f64) -> Group {
        let each = (share / rows.max(1.0)).min(1.0 - 1e-12);
        Group { rows, rate: -(-each).ln_1p(), share }
    }
}

/// Adds groups of ranks with the sum of `rank^-power` in each.
fn zipf(rows: f64, power: f64, groups: &mut SmallVec<[(f64, f64); 64]>) {
    let single = zipf::single_ranks(rows);
    groups.extend((1..=single).map(|rank| (1.0, zipf::weight(rank, power))));
    // Ranks above `first` up to `last`, by the integral between the midpoints around them.
    let mut first = f64::from(single);
    while first < rows {
        let last = (first * GROUP_GROWTH).ceil().min(rows);
        groups.push((last - first, zipf::integral(first + 0.5, last + 0.5, power)));
        first = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_popular_rows_is_theirs_alone() {
        let of = |shares: &[f32]| Popularity::new(shares.len() as f64, &Indices::Histogram(shares.into()));
        let few = of(&[0.5, 0.25, 0.125, 0.125]);
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        close(few.share_above(0.3), 0.5);
        close(few.share_above(0.125), 0.75);
        close(few.share_above(0.0), 1.0);
        close(Popularity::new(100.0, &Indices::Uniform).share_above(0.02), 0.0);
        // By Zipf's law the three most popular rows are 1, 2^-a and 3^-a of the first.
        let zipf = Popularity::new(1e6, &Indices::Zipf(1.2));
        let of_rank = |rank: f64| rank.powf(-1.2) * zipf.largest_share();
        let three = of_rank(1.0) + of_rank(2.0) + of_rank(3.0);
        close(zipf.share_above((of_rank(3.0) + of_rank(4.0)) / 2.0), three);
    }
}
