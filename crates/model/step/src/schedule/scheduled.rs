//! A scheduled step.

use steptime_graph::{MarkId, StepGraph, TiVec};

use super::reused_rows::ReusedRows;
use crate::ids::OpId;

/// A scheduled step.
#[derive(Debug, Clone)]
pub struct ScheduledStep {
    /// The graph, without samples.
    pub graph: StepGraph,
    /// For each op of the graph, the op of the step.
    pub ops: TiVec<steptime_graph::OpId, OpId>,
    /// Mapping to recorded rows.
    pub carried: ReusedRows,
}

impl ScheduledStep {
    /// An op at which the threads wait for one another; `None` where all of them reach their ends.
    #[must_use]
    pub fn circle(&self) -> Option<&str> {
        let mut passed: TiVec<MarkId, bool> = vec![false; self.graph.marks.len()].into();
        self.graph.marks_by_hand_off().into_iter().for_each(|mark| passed[mark] = true);
        let at = passed.iter_enumerated().find(|(_, passed)| !**passed)?.0;
        Some(self.graph.op_of_mark(at).map_or("a call outside of any op", |op| self.graph.op_name(op)))
    }
}
