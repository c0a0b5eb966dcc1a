//! A rank's place in its job.

use crate::buckets::Reducer;

/// The job that a process is a rank of.
#[derive(Debug)]
pub(crate) struct World {
    /// How many ranks it has.
    pub(crate) ranks: i64,
    /// The number of this one.
    pub(crate) rank: i64,
    /// What averages the gradients of parameters that every rank has.
    pub(crate) reducer: Reducer,
}

impl World {
    pub(crate) fn new(ranks: i64, rank: i64) -> World {
        World { ranks, rank, reducer: Reducer::default() }
    }

    /// Begins another step.
    pub(crate) fn restart(&mut self) {
        self.reducer.restart();
    }
}
