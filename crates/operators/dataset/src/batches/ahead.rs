//! Threads that read batches ahead.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::order::Order;
use super::plan::Plan;
use super::{ALIGNMENT, Allocate, Buffer, Layout, Shuffle};
use crate::{Error, Selection, Source};

/// State of the reading threads and of their consumer.
pub(super) struct Shared<A: Allocate> {
    pub(super) source: Arc<dyn Source>,
    pub(super) plan: Plan,
    shuffle: Option<Shuffle>,
    /// Greatest number of batches that are read or ready.
    ahead: u64,
    allocator: A,
    state: Mutex<State<A::Buffer>>,
    /// A batch is ready, or a thread has panicked.
    ready: Condvar,
    /// A batch was taken, or the threads should end.
    room: Condvar,
}

struct State<B> {
    /// Number of batches that threads have begun.
    begun: u64,
    /// Number of batches that the consumer has taken.
    taken: u64,
    ready: BTreeMap<u64, Result<Filled<B>, Error>>,
    free: Vec<B>,
    ended: bool,
    panicked: bool,
}

/// A buffer with a batch in it.
pub(super) struct Filled<B> {
    pub(super) buffer: B,
    pub(super) layout: Layout,
    pub(super) rows: usize,
}

/// Number of a batch, and the batch.
type Numbered<B> = (u64, Result<Filled<B>, Error>);

impl<A: Allocate> Shared<A> {
    pub(super) fn new(
        source: Arc<dyn Source>,
        plan: Plan,
        shuffle: Option<Shuffle>,
        ahead: u64,
        allocator: A,
    ) -> Shared<A> {
        let state = State {
            begun: 0,
            taken: 0,
            ready: BTreeMap::new(),
            free: Vec::new(),
            ended: false,
            panicked: false,
        };
        let state = Mutex::new(state);
        Shared { source, plan, shuffle, ahead, allocator, state, ready: Condvar::new(), room: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<A::Buffer>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills batches until all are begun, or the consumer is gone: the work of one thread.
    pub(super) fn read(&self) {
        let _watch = Watch(self);
        let mut rows = Vec::new();
        while let Some((number, buffer)) = self.begin() {
            let filled = self.fill(number, buffer, &mut rows);
            self.state().ready.insert(number, filled);
            self.ready.notify_all();
        }
    }

    /// Waits for room, and takes the number of the next batch and a free buffer.
    fn begin(&self) -> Option<(u64, Option<A::Buffer>)> {
        let mut state = self.state();
        loop {
            if state.ended || state.begun >= self.plan.len() {
                return None;
            }
            if state.begun < state.taken + self.ahead {
                state.begun += 1;
                return Some((state.begun - 1, state.free.pop()));
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn fill(
        &self,
        number: u64,
        buffer: Option<A::Buffer>,
        list: &mut Vec<u64>,
    ) -> Result<Filled<A::Buffer>, Error> {
        let (epoch, places) = self.plan.places(number);
        let selection = match self.shuffle {
            None => Selection::Range(places),
            Some(shuffle) => {
                list.clear();
                Order::new(shuffle, epoch, self.plan.rows).rows(places.start, places.end, list);
                Selection::List(list)
            }
        };
        let features = self.source.features();
        let rows = selection.len();
        let layout = Layout::new(features, rows, self.plan.batch as usize, |column| {
            self.source.values(&selection, column)
        })?;
        let mut buffer = self.with_room(buffer, layout.end)?;
        let bytes = buffer.bytes_mut();
        let (found, alignment) = (bytes.len(), 1 << bytes.as_ptr().addr().trailing_zeros().min(12));
        let slots = (alignment >= ALIGNMENT && found >= layout.end).then(|| layout.slots(bytes)).flatten();
        let slots =
            slots.ok_or(Error::Buffer { found, alignment, expected: layout.end, least: ALIGNMENT })?;
        self.source.fill(&selection, slots)?;
        Ok(Filled { buffer, layout, rows })
    }

    /// The buffer, or a new one if it is too short.
    fn with_room(&self, buffer: Option<A::Buffer>, bytes: usize) -> Result<A::Buffer, Error> {
        match buffer {
            Some(buffer) if buffer.bytes().len() >= bytes => Ok(buffer),
            short => {
                // A column with offsets has outgrown the buffer: the next batches may have somewhat more.
                let bytes = if short.is_some() { bytes + bytes / 4 } else { bytes };
                drop(short);
                self.allocator.allocate(bytes).map_err(|source| Error::Allocation { bytes, source })
            }
        }
    }

    /// Waits for the next batch in order. There is none after the last one.
    pub(super) fn take(&self) -> Option<Numbered<A::Buffer>> {
        let mut state = self.state();
        let number = state.taken;
        if number >= self.plan.len() {
            return None;
        }
        loop {
            if let Some(filled) = state.ready.remove(&number) {
                state.taken += 1;
                self.room.notify_all();
                return Some((number, filled));
            }
            if state.panicked {
                return Some((number, Err(Error::Panicked)));
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn taken(&self) -> u64 {
        self.state().taken
    }

    pub(super) fn give_back(&self, buffer: A::Buffer) {
        let mut state = self.state();
        if !state.ended {
            state.free.push(buffer);
        }
    }

    /// Ends the threads, and drops batches that are ready.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.free.clear();
        state.ready.clear();
        self.room.notify_all();
    }
}

/// Reports the panic of a thread to the consumer, which would wait for its batch forever.
struct Watch<'a, A: Allocate>(&'a Shared<A>);

impl<A: Allocate> Drop for Watch<'_, A> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().panicked = true;
            self.0.ready.notify_all();
        }
    }
}
