//! Position of a rank in its job.

use crate::buckets::Reducer;

/// The job of a rank.
#[derive(Debug)]
pub(crate) struct World {
    /// Number of ranks.
    pub(crate) ranks: i64,
    pub(crate) rank: i64,
    /// The averaging of gradients of replicated parameters.
    pub(crate) reducer: Reducer,
}

impl World {
    pub(crate) fn new(ranks: i64, rank: i64) -> World {
        World { ranks, rank, reducer: Reducer::default() }
    }

    /// Resets for another step.
    pub(crate) fn restart(&mut self) {
        self.reducer.restart();
    }
}
