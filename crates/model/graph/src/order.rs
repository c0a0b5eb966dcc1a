//! The order of what happens on the host where no time says it: by what waits for what.

use typed_index_collections::TiVec;

use crate::graph::StepGraph;
use crate::ids::{CallId, HostThreadId, MarkId};
use crate::tables::MarkKind;

impl StepGraph {
    /// Marks in an order in which they may be passed, all threads together: a thread goes on until its next mark waits for
    /// another thread. A mark that waits in a circle is left out.
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

    /// Calls in the order in which they so begin.
    #[must_use]
    pub fn calls_by_hand_off(&self) -> Vec<CallId> {
        let call = |mark: MarkId| match self.marks[mark].kind {
            MarkKind::CallBegin(call) => Some(call),
            _ => None,
        };
        self.marks_by_hand_off().into_iter().filter_map(call).collect()
    }
}
