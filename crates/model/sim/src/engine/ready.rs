//! Threads whose next mark can be passed, and those that wait for a mark of another thread.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use steptime_graph::{HostThreadId, MarkId};
use steptime_trace::Nanos;

use crate::cause::MarkCause;

/// Threads that have not finished the step. The time at which a mark can be passed is final once the mark that it waits for
/// has passed: each thread is examined once per mark, and not whenever another one advances.
#[derive(Debug, Default)]
pub(super) struct Ready {
    threads: BTreeMap<(Nanos, HostThreadId), MarkCause>,
    waiting: FxHashMap<MarkId, Vec<HostThreadId>>,
}

impl Ready {
    /// Adds a thread that can continue at a time.
    pub fn add(&mut self, thread: HostThreadId, (time, cause): (Nanos, MarkCause)) {
        self.threads.insert((time, thread), cause);
    }

    /// Adds a thread that waits for a mark.
    pub fn wait(&mut self, thread: HostThreadId, mark: MarkId) {
        self.waiting.entry(mark).or_default().push(thread);
    }

    /// Takes the thread that can continue first, with its time and cause.
    pub fn take_first(&mut self) -> Option<(HostThreadId, (Nanos, MarkCause))> {
        self.threads.pop_first().map(|((time, thread), cause)| (thread, (time, cause)))
    }

    /// Takes the threads that wait for any of these marks.
    pub fn take_waiting(&mut self, marks: impl Iterator<Item = MarkId>) -> Vec<HostThreadId> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        marks.filter_map(|mark| self.waiting.remove(&mark)).flatten().collect()
    }
}
