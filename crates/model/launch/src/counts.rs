//! Counted lookups: the access counts of a table's rows, without the row numbers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Counts of lookups, grouped by access count of their rows.
///
/// Written as `counts:90/90,12/30 most:3 padding:16 sorted`: rows and lookups of each group, lookups of the most frequent row
/// where its group has others, lookups of the padding row, whether indices ascend. Group `k` has the rows that occur from `2^k` to `2^(k+1) - 1` times.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Counts {
    groups: Arc<[RowGroup]>,
    /// Lookups of the most frequent row; 0 if it is the only one of its group, or unknown.
    most: u64,
    /// Lookups of the padding row, which gets no gradient.
    pub padding: u64,
    /// Whether no index is less than the one before it.
    pub sorted: bool,
}

/// Rows with about equal access counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowGroup {
    /// Number of rows.
    pub rows: u64,
    /// Number of lookups of these rows together.
    pub lookups: u64,
}

/// Groups of rows that occur less than four times: the number of rows of this popularity is estimated from chance.
const SELDOM: usize = 2;

impl Counts {
    /// Counts from groups in their order; `None` if a group has lookups and no rows, or fewer lookups than rows.
    #[must_use]
    pub fn new(groups: impl IntoIterator<Item = RowGroup>, padding: u64, sorted: bool) -> Option<Counts> {
        let groups: Arc<[RowGroup]> = groups.into_iter().collect();
        let fits = |group: &RowGroup| group.lookups >= group.rows && (group.rows > 0 || group.lookups == 0);
        let lookups = groups.iter().try_fold(0_u64, |sum, group| sum.checked_add(group.lookups))?;
        (groups.iter().all(fits) && padding <= lookups).then_some(Counts { groups, most: 0, padding, sorted })
    }

    /// These counts with the lookups of the most frequent row; `None` if no row of the last group can have that number.
    #[must_use]
    pub fn with_most(self, most: u64) -> Option<Counts> {
        let group = *self.groups.last()?;
        let rest = group.lookups.checked_sub(most)?;
        let others = group.rows.checked_sub(1)?;
        let fits = rest >= others && rest <= most.saturating_mul(others);
        fits.then_some(Counts { most, ..self })
    }

    /// Mean of several counts: the mean number of rows and lookups in each group. `None` for an empty slice.
    #[must_use]
    pub fn mean(all: &[Counts]) -> Option<Counts> {
        let number = all.len() as u64;
        let most = all.iter().map(|counts| counts.groups.len()).max()?;
        let mean = |at: usize, of: fn(&RowGroup) -> u64| {
            all.iter().filter_map(|counts| counts.groups.get(at)).map(of).sum::<u64>().div_ceil(number)
        };
        let groups = (0..most).map(|at| RowGroup {
            rows: mean(at, |group| group.rows),
            lookups: mean(at, |group| group.lookups),
        });
        let padding = all.iter().map(|counts| counts.padding).sum::<u64>() / number;
        Counts::new(groups, padding, all.iter().all(|counts| counts.sorted))
    }

    /// The same lookups in each of `slices` slices of a table: equal access counts, other rows.
    #[must_use]
    pub fn in_slices(&self, slices: u64) -> Counts {
        let times = |count: u64| count.saturating_mul(slices);
        let of_slices =
            |group: &RowGroup| RowGroup { rows: times(group.rows), lookups: times(group.lookups) };
        let groups = self.groups.iter().map(of_slices).collect();
        Counts { groups, padding: times(self.padding), ..*self }
    }

    /// Number of lookups.
    #[must_use]
    pub fn lookups(&self) -> u64 {
        self.groups.iter().map(|group| group.lookups).sum()
    }

    /// Number of different rows among them.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }

    /// Share of the lookups that go to the padding row.
    #[must_use]
    pub fn padding_share(&self) -> f64 {
        self.padding as f64 / (self.lookups() as f64).max(1.0)
    }

    /// Rows of a table with their lookups, from the most to the least popular.
    ///
    /// Frequent rows keep their observed popularity. Rare rows represent a larger set of equally popular rows, of
    /// which chance has shown the observed number: so more lookups find further rows.
    #[must_use]
    pub fn weights(&self, rows: f64) -> Vec<(f64, f64)> {
        let often = self.groups.iter().skip(SELDOM).rev().filter(|group| group.rows > 0);
        let mut weights: Vec<(f64, f64)> =
            often.map(|group| (group.rows as f64, group.lookups as f64)).collect();
        if let Some(first) = weights.first_mut().filter(|first| self.most > 0 && first.0 > 1.0) {
            let most = self.most as f64;
            *first = (first.0 - 1.0, first.1 - most);
            weights.insert(0, (1.0, most));
        }
        let sum = |of: fn(&RowGroup) -> u64| self.groups.iter().take(SELDOM).map(of).sum::<u64>() as f64;
        let (seen, lookups) = (sum(|group| group.rows), sum(|group| group.lookups));
        if seen > 0.0 {
            let left = rows - weights.iter().map(|group| group.0).sum::<f64>();
            weights.push(((lookups / rate(lookups / seen)).min(left).max(seen), lookups));
        }
        // Counts of a table with more rows than this one.
        let all: f64 = weights.iter().map(|group| group.0).sum();
        let scale = (rows / all.max(1.0)).min(1.0);
        weights.iter_mut().for_each(|group| group.0 *= scale);
        weights
    }
}

/// Mean `x` of a Poisson distribution whose mean over non-zero values is `seen`: `x / (1 - exp(-x)) = seen`.
fn rate(seen: f64) -> f64 {
    const LEAST: f64 = 1e-9;
    if seen <= 1.0 + LEAST {
        return 2.0 * LEAST;
    }
    let (mut low, mut high) = (LEAST, seen);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        *(if middle / -(-middle).exp_m1() < seen { &mut low } else { &mut high }) = middle;
    }
    0.5 * (low + high)
}

impl FromStr for Counts {
    type Err = ();

    /// Reads `counts:90/90,12/30 most:3 padding:16 sorted`.
    fn from_str(text: &str) -> Result<Counts, ()> {
        let (mut groups, mut most, mut padding, mut sorted) = (None, 0, 0, false);
        for word in text.split(' ') {
            match word.split_once(':').unwrap_or((word, "")) {
                ("counts", list) if groups.is_none() => {
                    let group = |pair: &str| {
                        let (rows, lookups) = pair.split_once('/')?;
                        Some(RowGroup { rows: rows.parse().ok()?, lookups: lookups.parse().ok()? })
                    };
                    let list = list.split(',').filter(|pair| !pair.is_empty());
                    groups = Some(list.map(group).collect::<Option<Vec<_>>>().ok_or(())?);
                }
                ("most", number) => most = number.parse().map_err(|_| ())?,
                ("padding", number) => padding = number.parse().map_err(|_| ())?,
                ("sorted", "") => sorted = true,
                _ => return Err(()),
            }
        }
        let counts = Counts::new(groups.ok_or(())?, padding, sorted).ok_or(())?;
        if most > 0 { counts.with_most(most).ok_or(()) } else { Ok(counts) }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counts:")?;
        for (at, RowGroup { rows, lookups }) in self.groups.iter().enumerate() {
            write!(f, "{}{rows}/{lookups}", if at == 0 { "" } else { "," })?;
        }
        if self.most > 0 {
            write!(f, " most:{}", self.most)?;
        }
        if self.padding > 0 {
            write!(f, " padding:{}", self.padding)?;
        }
        f.write_str(if self.sorted { " sorted" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Indices, Popularity, Sampler};

    fn counted(rows: &[u64]) -> Counts {
        let mut times = std::collections::HashMap::<u64, u64>::new();
        rows.iter().for_each(|row| *times.entry(*row).or_default() += 1);
        let mut groups = vec![RowGroup { rows: 0, lookups: 0 }; 40];
        for &count in times.values() {
            let group = &mut groups[count.ilog2() as usize];
            group.rows += 1;
            group.lookups += count;
        }
        Counts::new(groups, 0, false).unwrap()
    }

    #[test]
    fn what_is_counted_of_a_batch_tells_larger_batches() {
        let mut state = 1_u64;
        let mut bits = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ (state >> 31)
        };
        for (law, rows) in
            [(Indices::Uniform, 100_000), (Indices::Zipf(1.05), 1_000_000), (Indices::Zipf(1.2), 50_000)]
        {
            let sampler = Sampler::new(&law, rows);
            let some: Vec<u64> = (0..20_000).map(|_| sampler.row(&mut bits)).collect();
            let counts = counted(&some);
            let of = |indices: &Indices| Popularity::new(rows as f64, indices);
            let (known, exact) = (of(&Indices::Counts(counts.clone())), of(&law));
            let near = |a: f64, b: f64, within: f64| assert!((a / b - 1.0).abs() < within, "{law} {a} {b}");
            near(known.distinct(20_000.0), counts.distinct() as f64, 0.02);
            near(known.distinct(80_000.0), exact.distinct(80_000.0), 0.16);
            near(known.distinct(5_000.0), exact.distinct(5_000.0), 0.08);
            if law != Indices::Uniform {
                near(known.largest_share(), exact.largest_share(), 0.15);
            }
        }
    }

    #[test]
    fn counts_are_written_as_they_are_read() {
        for text in [
            "counts:90/90,12/30",
            "counts:0/0,0/0,1/5 padding:5",
            "counts:1/1 sorted",
            "counts:",
            "counts:0/0,3/7 most:3 sorted",
        ] {
            assert_eq!(text.parse::<Counts>().unwrap().to_string(), text);
            assert!(matches!(text.parse::<Indices>(), Ok(Indices::Counts(_))));
        }
        for wrong in [
            "counts",
            "counts:3",
            "counts:3/1",
            "counts:0/1",
            "counts:1/1 padding:2",
            "counts:1/1 even",
            "counts:2/4 most:4",
        ] {
            assert!(wrong == "counts" || wrong.parse::<Counts>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_most_frequent_row_is_apart_from_its_group() {
        let share = |text: &str| Popularity::new(100.0, &text.parse::<Indices>().unwrap()).largest_share();
        assert_eq!(share("counts:0/0,0/0,4/20"), 0.25);
        assert_eq!(share("counts:0/0,0/0,4/20 most:7"), 0.35);
    }

    #[test]
    fn slices_have_rows_of_their_own() {
        let one = "counts:1/1,2/5,4/22,8/92,4/70 most:19 sorted".parse::<Counts>().unwrap();
        let all = one.in_slices(1000);
        assert_eq!((all.lookups(), all.distinct()), (190_000, 19_000));
        assert_eq!(all.in_slices(1), all);
        let share = Popularity::new(20_000.0, &Indices::Counts(all)).largest_share();
        assert!((share - 19.0 / 190_000.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn a_row_that_is_half_of_all_lookups_stays_so() {
        let mut rows: Vec<u64> = (1..=1000).collect();
        rows.extend([0; 1000]);
        let of = Popularity::new(1e6, &Indices::Counts(counted(&rows)));
        assert!((of.largest_share() - 0.5).abs() < 1e-9);
        assert!((of.distinct(2000.0) - 1001.0).abs() < 2.0);
        assert!((of.distinct(8000.0) - 4001.0).abs() < 20.0);
    }
}
