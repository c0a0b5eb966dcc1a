//! Changes by a rule: removed, inserted and changed ops.

use serde::Serialize;
use steptime_step::{self, Change, Diff};

use crate::columns::{Column, Columns};

/// The ops in which a step differs from the one before the change.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Changes {
    /// The rule, or several.
    pub rule: String,
    /// Numbers of removed, inserted and changed ops.
    pub counts: [usize; 3],
    /// 0 removed, 1 inserted, 2 changed.
    pub change: Column,
    /// Names, texts.
    pub name: Column,
    /// One more than the op of the recording; 0 if a rule inserted it.
    pub op: Column,
    /// One more than the name of the op around each, a text; 0 if there is none.
    pub within: Column,
}

/// Collects the changed ops. Removed ones are ops of `before`, the others of `after`.
pub(crate) fn collect(
    rule: &str,
    diff: &Diff,
    before: &steptime_step::StepIr,
    after: &steptime_step::StepIr,
    columns: &mut Columns,
) -> Changes {
    let mut rows: Vec<(u8, u32, u32, u32)> = Vec::with_capacity(diff.changes.len());
    for &(change, op) in &diff.changes {
        let (place, step) = match change {
            Change::Removed => (0, before),
            Change::Inserted => (1, after),
            Change::Changed => (2, after),
        };
        let row = &step.ops[op];
        let recorded = row.origin.recorded().map_or(0, |op| op.0 + 1);
        let within = row.parent.map_or(0, |parent| 1 + columns.text(&step.ops[parent].name));
        rows.push((place, columns.text(&row.name), recorded, within));
    }
    Changes {
        rule: rule.to_owned(),
        counts: diff.counts(),
        change: columns.small(rows.iter().map(|row| row.0)),
        name: columns.whole(rows.iter().map(|row| row.1)),
        op: columns.growing(rows.iter().map(|row| row.2)),
        within: columns.whole(rows.iter().map(|row| row.3)),
    }
}
