//! Differences between steps, as a list of ops.

use steptime_graph::TiVec;

use crate::ids::OpId;
use crate::step::{Origin, StepIr};

/// Kind of change of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// It no longer runs.
    Removed,
    /// It was inserted.
    Inserted,
    /// It has other arguments or settings.
    Changed,
}

/// The ops in which a step differs from the recording; only the outermost ones where all ops inside changed alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// Changed ops in the order of the step, the removed ones first.
    pub changes: Vec<(Change, OpId)>,
}

impl Diff {
    /// Differences between a step and an earlier version of it.
    #[must_use]
    pub fn between(before: &StepIr, after: &StepIr) -> Diff {
        let now = after.running();
        let mut runs: TiVec<OpId, bool> = vec![false; after.ops.len()].into();
        now.iter().for_each(|&op| runs[op] = true);
        let mut changes = Vec::new();
        let gone = |op: OpId| runs.get(op) != Some(&true);
        for op in before.running() {
            let with_parent = before.ops[op].parent.is_some_and(gone);
            if gone(op) && !with_parent {
                changes.push((Change::Removed, op));
            }
        }
        for op in now {
            let row = &after.ops[op];
            let within = |parent: OpId| matches!(after.ops[parent].origin, Origin::Inserted(_));
            match row.origin {
                Origin::Inserted(_) if !row.parent.is_some_and(within) => {
                    changes.push((Change::Inserted, op))
                }
                Origin::Changed(..)
                    if before.ops.get(op).is_none_or(|was| was.origin != row.origin || was != row) =>
                {
                    changes.push((Change::Changed, op));
                }
                _ => {}
            }
        }
        Diff { changes }
    }

    /// Numbers of removed, inserted and changed ops.
    #[must_use]
    pub fn counts(&self) -> [usize; 3] {
        let of = |kind: Change| self.changes.iter().filter(|(change, _)| *change == kind).count();
        [of(Change::Removed), of(Change::Inserted), of(Change::Changed)]
    }
}
