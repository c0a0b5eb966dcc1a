//! Batches of a source, read ahead by threads.

mod ahead;
mod batch;
mod buffer;
mod layout;
mod order;
pub(crate) mod permutation;
mod plan;

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

pub use batch::{Batch, ColumnIndices};
pub use buffer::{ALIGNMENT, Allocate, Buffer, Heap, HeapBuffer};
pub use layout::{ColumnLayout, Layout};
pub use order::Shuffle;
pub use plan::{Last, Position};

use crate::{Error, Source};
use ahead::Shared;
use plan::Plan;

/// Options of [`Batches`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// Rows of a batch, at least 1.
    pub batch: usize,
    /// Shuffling of the rows; otherwise they come in the order of the source.
    pub shuffle: Option<Shuffle>,
    /// Treatment of the rows at the end of an epoch that do not fill a batch.
    pub last: Last,
    /// Number of epochs from epoch 0 on; a start in a later one leaves those before it out.
    pub epochs: u64,
    /// Place to start from.
    pub start: Position,
    /// Number of threads that read, at least 1. The batches do not depend on it.
    pub threads: usize,
    /// Greatest number of batches that are read or ready before they are taken, at least 1.
    pub ahead: usize,
}

impl BatchOptions {
    /// One epoch in the order of the source, with 2 threads that read up to 4 batches ahead.
    #[must_use]
    pub fn new(batch: usize) -> BatchOptions {
        let (shuffle, last, start) = (None, Last::Short, Position::default());
        BatchOptions { batch, shuffle, last, epochs: 1, start, threads: 2, ahead: 4 }
    }
}

/// Iterator over the batches of a source. It ends after an error.
pub struct Batches<A: Allocate = Heap> {
    shared: Arc<Shared<A>>,
    threads: Vec<JoinHandle<()>>,
    failed: bool,
}

impl Batches {
    /// Batches in memory of the heap.
    ///
    /// # Errors
    ///
    /// If an option is impossible, or the threads cannot be started.
    pub fn new(source: Arc<dyn Source>, options: BatchOptions) -> Result<Batches, Error> {
        Batches::with_allocator(source, options, Heap)
    }
}

impl<A: Allocate> Batches<A> {
    /// Batches in memory of the caller's kind.
    ///
    /// # Errors
    ///
    /// If an option is impossible, or the threads cannot be started.
    pub fn with_allocator(
        source: Arc<dyn Source>,
        options: BatchOptions,
        allocator: A,
    ) -> Result<Batches<A>, Error> {
        let BatchOptions { batch, shuffle, last, epochs, start, threads, ahead } = options;
        let rows = source.rows();
        Error::option("batch size", batch as u64, 1..1 << 31, "choose from 1 to 2^31 - 1 rows")?;
        Error::option("number of threads", threads as u64, 1..1 << 16, "choose from 1 to 65535")?;
        Error::option("number of batches ahead", ahead as u64, 1..1 << 32, "choose at least 1")?;
        Error::option("start", start.row, 0..rows.saturating_add(1), "the split has fewer rows")?;
        if let Some(shuffle) = shuffle {
            Error::option("block of rows", shuffle.block.into(), 1..1 << 32, "choose at least 1")?;
            Error::option("window of blocks", shuffle.blocks.into(), 1..1 << 32, "choose at least 1")?;
        }
        let plan = Plan { rows, batch: batch as u64, last, start, epochs };
        let shared = Arc::new(Shared::new(source, plan, shuffle, ahead as u64, allocator));
        let mut batches = Batches { shared, threads: Vec::new(), failed: false };
        for _ in 0..threads {
            let shared = Arc::clone(&batches.shared);
            let named = thread::Builder::new().name("steptime-batches".to_owned());
            let started = named.spawn(move || shared.read());
            batches.threads.push(started.map_err(|source| Error::Allocation { bytes: 0, source })?);
        }
        Ok(batches)
    }

    /// Place after the last returned batch: a start there continues with the next one.
    #[must_use]
    pub fn position(&self) -> Position {
        self.shared.plan.position(self.shared.taken())
    }

    /// Number of batches that are not returned yet.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.shared.plan.len() - self.shared.taken()
    }
}

impl<A: Allocate> Iterator for Batches<A> {
    type Item = Result<Batch<A>, Error>;

    fn next(&mut self) -> Option<Result<Batch<A>, Error>> {
        if self.failed {
            return None;
        }
        let (number, filled) = self.shared.take()?;
        let (epoch, places) = self.shared.plan.places(number);
        let batch = filled.map(|filled| Batch {
            buffer: Some(filled.buffer),
            shared: Arc::clone(&self.shared),
            layout: filled.layout,
            rows: filled.rows,
            position: Position { epoch, row: places.start },
        });
        self.failed = batch.is_err();
        Some(batch)
    }
}

impl<A: Allocate> Drop for Batches<A> {
    fn drop(&mut self) {
        self.shared.end();
        for thread in self.threads.drain(..) {
            // A panic was reported in place of the thread's batch.
            let _ = thread.join();
        }
    }
}

impl<A: Allocate> fmt::Debug for Batches<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position();
        f.debug_struct("Batches").field("position", &position).finish_non_exhaustive()
    }
}
