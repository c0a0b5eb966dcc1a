//! Batches of the whole job, read once for all ranks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use steptime_dataset::{Batch, Batches, Error, Position};
use steptime_runtime::Rank;

use crate::Failure;

/// Reader of batches that all ranks take in the same order.
pub struct Reader {
    state: Mutex<State>,
    ranks: usize,
    /// Number of batches.
    len: u64,
}

struct State {
    batches: Batches,
    /// Batches that not all ranks have taken, each with the place after it and the number of ranks that have taken it.
    window: VecDeque<(Arc<Batch>, Position, usize)>,
    /// Number of the first of them.
    first: u64,
}

impl Reader {
    fn new(batches: Batches, ranks: usize) -> Reader {
        let len = batches.remaining();
        let state = State { batches, window: VecDeque::new(), first: 0 };
        Reader { state: Mutex::new(state), ranks, len }
    }

    /// The batch of a number, and the place after it; `None` at the end, and after an error, which one rank alone receives.
    fn take(&self, number: u64) -> Option<Result<(Arc<Batch>, Position), Error>> {
        // Each change leaves a consistent state.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::try_from(number - state.first).unwrap_or(usize::MAX);
        if place == state.window.len() {
            let batch = match state.batches.next()? {
                Ok(batch) => Arc::new(batch),
                Err(error) => return Some(Err(error)),
            };
            let position = state.batches.position();
            state.window.push_back((batch, position, 0));
        }
        let (batch, position, taken) = state.window.get_mut(place)?;
        *taken += 1;
        let found = (Arc::clone(batch), *position);
        while state.window.front().is_some_and(|(.., taken)| *taken == self.ranks) {
            state.window.pop_front();
            state.first += 1;
        }
        Some(Ok(found))
    }
}

/// The batches of a run, as one rank takes them.
pub struct RankBatches {
    reader: Arc<Reader>,
    next: u64,
    position: Position,
}

impl RankBatches {
    /// The batches that the first rank opens, for each rank.
    ///
    /// # Errors
    /// Where they cannot be opened, or another rank failed.
    pub fn open(
        rank: &Rank,
        start: Position,
        open: impl FnOnce() -> Result<Batches, Failure>,
    ) -> Result<RankBatches, Failure> {
        let own = if rank.rank() == 0 { Some(Arc::new(Reader::new(open()?, rank.ranks()))) } else { None };
        let all = rank.gather(own, None)?;
        let reader = all.first().and_then(|first| first.as_ref().clone()).ok_or("no rank reads batches")?;
        Ok(RankBatches { reader, next: 0, position: start })
    }

    /// The next batch of the job.
    pub fn next(&mut self) -> Option<Result<Arc<Batch>, Error>> {
        let taken = self.reader.take(self.next)?;
        self.next += 1;
        Some(taken.map(|(batch, position)| {
            self.position = position;
            batch
        }))
    }

    /// Place after the batch that was taken last.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Number of batches that the rank has not taken.
    pub fn remaining(&self) -> u64 {
        self.reader.len - self.next
    }
}
