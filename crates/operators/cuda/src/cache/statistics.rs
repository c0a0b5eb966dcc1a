//! Hit rates.

/// Counts of a cache, in distinct rows of each batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Number of batches.
    pub batches: u64,
    /// Number of requested rows.
    pub wanted: u64,
    /// Number of requested rows that were in the cache.
    pub hits: u64,
    /// Number of rows that were evicted.
    pub evicted: u64,
    /// Number of evicted rows that were changed and therefore written back.
    pub written: u64,
}

impl Statistics {
    pub(super) fn add(&mut self, wanted: u64, hits: u64, evicted: u64, written: u64) {
        self.batches += 1;
        self.wanted += wanted;
        self.hits += hits;
        self.evicted += evicted;
        self.written += written;
    }

    /// Share of requested rows that were in the cache; 1 where none were requested.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        if self.wanted == 0 { 1.0 } else { self.hits as f64 / self.wanted as f64 }
    }

    /// Number of rows that were fetched from the host.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.wanted - self.hits
    }
}
