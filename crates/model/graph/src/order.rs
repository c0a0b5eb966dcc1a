//! The order of calls where no time says it: by what waits for what.

use typed_index_collections::TiVec;

use crate::graph::StepGraph;
use crate::ids::{CallId, HostThreadId, MarkId};
use crate::tables::MarkKind;

impl StepGraph {
    /// Calls in an order in which they may begin, all threads together: a thread goes on until its next mark waits for
    /// another thread.
    #[must_use]
    pub fn calls_by_hand_off(&self) -> Vec<CallId> {
        let mut next: TiVec<HostThreadId, MarkId> = self.threads.iter().map(|t| t.first_mark).collect();
        let mut calls = Vec::with_capacity(self.calls.len());
        let passed = |next: &TiVec<HostThreadId, MarkId>, mark: MarkId| next[self.marks[mark].thread] > mark;
        loop {
            let before = calls.len();
            let mut moved = false;
            for thread in self.threads.keys() {
                while next[thread] < self.threads[thread].end_mark {
                    let mark = next[thread];
                    let row = &self.marks[mark];
                    if !row.wraps && !passed(&next, row.after) {
                        break;
                    }
                    if let MarkKind::CallBegin(call) = row.kind {
                        calls.push(call);
                    }
                    next[thread] = mark.next();
                    moved = true;
                }
            }
            if !moved {
                debug_assert!(calls.len() >= before);
                return calls;
            }
        }
    }
}
