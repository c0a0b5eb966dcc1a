//! Tables in the memory of their node's host, each part with a cache of its rows on its GPU.
//!
//! The GPU runs its lookups and updates on the rows of the cache. Before them, rows that a batch accesses and the cache lacks are copied
//! over the link, and the same number of changed rows is written back. That number follows from the distribution of indices.

use steptime_eager::{Cache, Model, TableLayout, TableShard, TableSize};
use steptime_launch::{Indices, Popularity, row_cache};

/// Sizes of the caches that are tried, as multiples of the smallest possible one.
const SIZES: [i64; 3] = [1, 4, 16];
/// Share of the rows above which a cache saves too little memory.
const MOST: f64 = 0.5;

/// A part of a table that may be in hosts' memory: its rows, and the lookups of a step in them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'i> {
    rows: i64,
    lookups: f64,
    indices: &'i Indices,
}

impl<'i> Rows<'i> {
    /// A part of a table whose rows are split over `over` GPUs, for batches of `batch` samples.
    pub(super) fn new(size: &TableSize, over: i64, batch: u64, indices: &'i Indices) -> Rows<'i> {
        let over = over.max(1);
        let rows = (size.rows + over - 1) / over;
        Rows { rows, lookups: batch as f64 * size.lookups as f64 / over as f64, indices }
    }

    /// Caches of several sizes, smallest first; none where one has to hold most of the rows.
    pub(super) fn caches(&self) -> Vec<Cache> {
        let popularity = self.popularity();
        let least = row_cache::least(&popularity, self.lookups).ceil() as i64;
        let sizes = SIZES.iter().map(|times| least.saturating_mul(*times));
        let fits = |&held: &i64| held > 0 && held as f64 <= MOST * self.rows as f64;
        sizes.filter(fits).map(|held| self.with(&popularity, held)).collect()
    }

    /// A cache of `held` rows.
    pub(super) fn cache(&self, held: i64) -> Cache {
        self.with(&self.popularity(), held)
    }

    fn popularity(&self) -> Popularity {
        Popularity::new(self.rows as f64, self.indices)
    }

    fn with(&self, popularity: &Popularity, held: i64) -> Cache {
        let rows = held.clamp(1, self.rows.max(1));
        let misses = row_cache::misses(popularity, self.lookups, rows as f64).round() as i64;
        Cache { rows, misses: misses.clamp(0, rows) }
    }
}

/// Sets the accessed rows of each part and the misses of each cache, for this distribution of indices.
#[must_use]
pub fn missing(model: &Model, homes: Vec<TableLayout>, indices: &Indices) -> Vec<TableLayout> {
    let sizes = model.tables();
    let all = homes.into_iter().zip(&sizes);
    all.map(|(home, size)| {
        let lookups = model.batch() as f64 * size.lookups as f64;
        let wanted = |part: &TableShard| {
            let [first, count] = [part.offset[0], part.size[0]].map(|rows| rows as f64);
            lookups * indices.share_of_rows(first, count, size.rows as f64)
        };
        home.wanted(|part| matches!(indices, Indices::FoldedZipf(_)).then(|| wanted(part).round() as i64))
            .cached(|part| {
                let rows = Rows { rows: part.size[0], lookups: wanted(part), indices };
                part.cache.map(|cache| rows.cache(cache.rows))
            })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_caches_miss_less_and_small_tables_have_none() {
        let size = TableSize { rows: 1_000_000_000, columns: 64, lookups: 10 };
        let of = |size: &TableSize, over| Rows::new(size, over, 4096, &Indices::Zipf(1.05)).caches();
        let caches = of(&size, 1);
        assert_eq!(caches.len(), 3);
        assert!(caches.windows(2).all(|pair| pair[0].rows < pair[1].rows && pair[0].misses > pair[1].misses));
        // Of a part of the rows, fewer are accessed.
        assert!(of(&size, 4)[0].misses < caches[0].misses);
        assert!(of(&TableSize { rows: 10_000, ..size }, 1).is_empty());
    }

    #[test]
    fn uniform_lookups_in_a_huge_table_miss_nearly_all() {
        let size = TableSize { rows: 1_000_000_000, columns: 64, lookups: 1 };
        let cache = Rows::new(&size, 1, 4096, &Indices::Unknown).caches()[0];
        assert!((4090..=4096).contains(&cache.misses), "{cache:?}");
    }
}
