//! Share of lookups in a contiguous range of a table's rows.

use crate::{Indices, zipf};

impl Indices {
    /// Share of lookups in `count` rows from `first` on, of a table of `rows` rows. Popular rows are scattered over a table, so
    /// that a part has lookups in proportion to its rows; but for `folded-zipf:A` the row of rank `r` is row `r`.
    #[must_use]
    pub fn share_of_rows(&self, first: f64, count: f64, rows: f64) -> f64 {
        let rows = rows.max(1.0);
        let first = first.clamp(0.0, rows);
        let end = (first + count.max(0.0)).min(rows);
        let even = (end - first) / rows;
        let Indices::FoldedZipf(power) = *self else { return even };
        // Ranks beyond the table wrap around evenly; so does its last rank, which is row 0.
        let beyond = zipf::integral(rows - 0.5, zipf::ENDLESS, power);
        let up_to = |row: f64| up_to_rank(row - 1.0, power);
        let all = up_to(rows) + beyond;
        let own = up_to(end.max(1.0)) - up_to(first.max(1.0));
        if all > 0.0 && all.is_finite() { (own + beyond * even) / all } else { even }
    }
}

/// Weight of all ranks up to `rank`.
fn up_to_rank(rank: f64, power: f64) -> f64 {
    let single = zipf::single_ranks(rank);
    let sum: f64 = (1..=single).map(|rank| zipf::weight(rank, power)).sum();
    let counted = f64::from(single);
    if rank <= counted { sum } else { sum + zipf::integral(counted + 0.5, rank + 0.5, power) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sampler;

    #[test]
    fn parts_have_lookups_in_proportion_to_their_rows() {
        for indices in [Indices::Unknown, Indices::Uniform, Indices::Zipf(1.05)] {
            assert_eq!(indices.share_of_rows(100.0, 970.0, 1000.0), 0.9, "{indices}");
            assert_eq!(indices.share_of_rows(0.0, 970.0, 1000.0), 0.97, "{indices}");
        }
    }

    #[test]
    fn of_a_folded_law_the_first_rows_have_as_many_lookups_as_are_drawn() {
        let (indices, rows) = (Indices::FoldedZipf(1.2), 1000_u64);
        let sampler = Sampler::new(&indices, rows);
        let mut state = 7_u64;
        let mut bits = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ (state >> 29)
        };
        let drawn: Vec<u64> = (0..200_000).map(|_| sampler.row(&mut bits)).collect();
        for (first, count) in [(0, 10), (0, 250), (250, 250), (900, 100), (0, 1000)] {
            let inside = drawn.iter().filter(|&&row| (first..first + count).contains(&row)).count();
            let found = indices.share_of_rows(first as f64, count as f64, rows as f64);
            assert!((found - inside as f64 / 200_000.0).abs() < 0.01, "{first} {count}: {found} {inside}");
        }
    }
}
