//! Threads whose next mark can be passed, and those that wait for a mark of another thread.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use steptime_graph::{HostThreadId, MarkId};
use steptime_trace::Nanos;

use crate::cause::MarkCause;

/// Threads that are not through the step. When a mark can be passed does not change any more once the mark that it waits for
/// has passed: each thread is looked at once a mark, and not whenever any other goes on.
#[derive(Debug, Default)]
pub(super) struct Ready {
    threads: BTreeMap<(Nanos, HostThreadId), MarkCause>,
    waiting: FxHashMap<MarkId, Vec<HostThreadId>>,
}

impl Ready {
    /// A thread can go on at a time.
    pub fn add(&mut self, thread: HostThreadId, (time, cause): (Nanos, MarkCause)) {
        self.threads.insert((time, thread), cause);
    }

    /// A thread waits for a mark.
    pub fn wait(&mut self, thread: HostThreadId, mark: MarkId) {
        self.waiting.entry(mark).or_default().push(thread);
    }

    /// Takes the thread that can go on first; when, and why then.
    pub fn take_first(&mut self) -> Option<(HostThreadId, (Nanos, MarkCause))> {
        self.threads.pop_first().map(|((time, thread), cause)| (thread, (time, cause)))
    }

    /// Takes the threads that wait for some marks.
    pub fn take_waiting(&mut self, marks: impl Iterator<Item = MarkId>) -> Vec<HostThreadId> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        marks.filter_map(|mark| self.waiting.remove(&mark)).flatten().collect()
    }
}
