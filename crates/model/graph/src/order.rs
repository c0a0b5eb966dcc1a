//! Order of host events without times: derived from their dependencies.

use typed_index_collections::TiVec;

use crate::graph::StepGraph;
use crate::ids::{CallId, HostThreadId, MarkId};
use crate::tables::MarkKind;

impl StepGraph {
    /// Returns the marks of all threads in an order that their dependencies allow: a thread continues until its next mark waits for
    /// another thread. A mark in a cycle of waits is left out.
    #[must_use]
    pub fn marks_by_hand_off(&self) -> Vec<MarkId> {
        let mut next: TiVec<HostThreadId, MarkId> = self.threads.iter().map(|t| t.first_mark).collect();
        let mut marks = Vec::with_capacity(self.marks.len());
        loop {
            let before = marks.len();
            for (thread, row) in self.threads.iter_enumerated() {
                while next[thread] < row.end_mark {
                    let mark = next[thread];
                    let waits = &self.marks[mark];
                    if !waits.wraps && next[self.marks[waits.after].thread] <= waits.after {
                        break;
                    }
                    marks.push(mark);
                    next[thread] = mark.next();
                }
            }
            if marks.len() == before {
                return marks;
            }
        }
    }

    /// Returns the calls in the order of their marks in [`StepGraph::marks_by_hand_off`].
    #[must_use]
    pub fn calls_by_hand_off(&self) -> Vec<CallId> {
        let call = |mark: MarkId| match self.marks[mark].kind {
            MarkKind::CallBegin(call) => Some(call),
            _ => None,
        };
        self.marks_by_hand_off().into_iter().filter_map(call).collect()
    }
}
