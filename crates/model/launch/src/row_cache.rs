//! Misses of a batch in a cache of the rows of earlier batches: a closed form.
//!
//! Such a cache holds the most recently looked-up rows of a table. After `k` lookups these are `D(k) = Σ (1 - (1 - p_i)^k)` different
//! rows, so a cache of `C` rows holds those of the last `k` lookups with `D(k) = C` (Che, Tung and Wang 2002). A batch of `n` lookups needs a
//! row that is not among them with the probability `(1 - (1 - p_i)^n) (1 - p_i)^k`; summed up, `D(k + n) - D(k)`.

use crate::Popularity;

/// Least ratio of a cache's rows to the rows of two batches: sets are not filled evenly.
const ROOM: f64 = 3.0;

/// Number of rows that a batch of `lookups` lookups misses in a full cache of `held` rows.
#[must_use]
pub fn misses(popularity: &Popularity, lookups: f64, held: f64) -> f64 {
    // A cache that holds every row that is ever looked up misses none.
    let mut most = lookups.max(1.0);
    while popularity.distinct(most) < held {
        if most > 1e18 {
            return 0.0;
        }
        most *= 2.0;
    }
    let window = popularity.window(1.0, 0.0, held, most);
    (popularity.distinct(window + lookups) - popularity.distinct(window)).clamp(0.0, lookups)
}

/// Least number of rows that a cache must hold for batches of `lookups` lookups.
#[must_use]
pub fn least(popularity: &Popularity, lookups: f64) -> f64 {
    ROOM * popularity.distinct(2.0 * lookups)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Indices, Sampler, SplitMix};

    /// Mean misses of a full cache of the most recently used rows, simulated batch by batch.
    fn simulated(rows: u64, indices: &Indices, lookups: usize, held: usize) -> f64 {
        let sampler = Sampler::new(indices, rows);
        let mut last: Vec<u32> = vec![0; rows as usize];
        let mut order: BTreeSet<(u32, u64)> = BTreeSet::new();
        let (mut random, mut missed) = (SplitMix::new(7), 0_u64);
        let mut bits = move || random.bits();
        for batch in 1..=160_u32 {
            let wanted: BTreeSet<u64> = (0..lookups).map(|_| sampler.row(&mut bits)).collect();
            for row in wanted {
                let before = last[row as usize];
                if !order.remove(&(before, row)) && batch > 80 {
                    missed += 1;
                }
                order.insert((batch, row));
                last[row as usize] = batch;
            }
            while order.len() > held {
                order.pop_first();
            }
        }
        missed as f64 / 80.0
    }

    #[test]
    fn the_closed_form_is_what_a_cache_of_the_latest_rows_misses() {
        for (indices, held) in [
            (Indices::Uniform, 30_000),
            (Indices::Uniform, 90_000),
            (Indices::Zipf(1.05), 20_000),
            (Indices::Zipf(0.8), 40_000),
        ] {
            let popularity = Popularity::new(100_000.0, &indices);
            let found = misses(&popularity, 4000.0, f64::from(held));
            let counted = simulated(100_000, &indices, 4000, held as usize);
            assert!((found / counted - 1.0).abs() < 0.04, "{indices} {held}: {found} against {counted}");
        }
    }

    /// 8,192 x 16 lookups in a table of 4M rows through a cache of 1M, on an H200: uniform, 129,038 rows of a batch, 25 % of them cached;
    /// and row E u^4 for uniform u, 104,906 rows, 52 % cached.
    #[test]
    fn what_was_counted_on_a_gpu() {
        let (lookups, held) = (131_072.0, 1_048_576.0);
        for (indices, rows, counted) in
            [(Indices::Uniform, 129_038.0, 0.25), (Indices::Zipf(0.75), 104_906.0, 0.52)]
        {
            let popularity = Popularity::new(4_194_304.0, &indices);
            let wanted = popularity.distinct(lookups);
            let hits = 1.0 - misses(&popularity, lookups, held) / wanted;
            assert!((wanted / rows - 1.0).abs() < 0.03, "{indices}: {wanted}");
            assert!((hits - counted).abs() < 0.02, "{indices}: {hits}");
        }
    }

    #[test]
    fn larger_caches_miss_less_and_one_of_all_rows_nothing() {
        let popularity = Popularity::new(1e6, &Indices::Zipf(1.05));
        let mut last = f64::INFINITY;
        for held in [1e3, 1e4, 1e5, 5e5, 9e5] {
            let found = misses(&popularity, 10_000.0, held);
            assert!(found < last && found >= 0.0, "{held}: {found} after {last}");
            last = found;
        }
        assert_eq!(misses(&popularity, 10_000.0, 2e6), 0.0);
        assert!(misses(&popularity, 10_000.0, 1e6) < 1.0);
        assert!(least(&popularity, 100.0) <= 600.0);
        assert_eq!(misses(&popularity, 0.0, 1e3), 0.0);
    }
}
