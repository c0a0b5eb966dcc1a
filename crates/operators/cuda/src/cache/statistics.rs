//! How often rows were there.

/// What batches found in a cache, in distinct rows of each batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Batches.
    pub batches: u64,
    /// Rows that were wanted.
    pub wanted: u64,
    /// Rows that were there.
    pub hits: u64,
    /// Rows that left to make room.
    pub evicted: u64,
    /// Rows that were changed, and so written back, when they left.
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

    /// The share of wanted rows that were there; 1 where none were wanted.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        if self.wanted == 0 { 1.0 } else { self.hits as f64 / self.wanted as f64 }
    }

    /// Rows that came from the host.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.wanted - self.hits
    }
}
