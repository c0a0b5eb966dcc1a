//! The table of ops: each name with its implementation.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::ops;
use crate::row::Row;

/// The row of an op.
pub(crate) fn find(name: &str) -> Option<&'static Row> {
    static TABLE: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    let rows = || ops::FILES.iter().copied().flatten().map(|row| (row.name, row)).collect();
    TABLE.get_or_init(rows).get(name).copied()
}

/// Prefixes of ops of other libraries, with the remedy.
const FOREIGN: [(&str, &str); 2] = [
    ("fbgemm::", "it is an op of FBGEMM: use `operators` instead of `operators-fbgemm`"),
    ("fsdp::", "it is an op of several ranks: train the model on one device"),
];

/// The reason why an op of another library cannot run.
pub(crate) fn foreign(name: &str) -> Option<&'static str> {
    FOREIGN.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, why)| why)
}

/// Names of all ops that run, sorted.
#[must_use]
pub fn known_ops() -> Vec<&'static str> {
    let mut names: Vec<_> =
        ops::FILES.iter().copied().flatten().filter(|row| row.build.is_ok()).map(|row| row.name).collect();
    names.sort_unstable();
    names
}

/// Reason for the refusal of an op that the table does not have.
pub(crate) fn unknown(name: &str) -> String {
    let base = name.trim_end_matches('_');
    let close = |known: &&&str| {
        let known = known.trim_end_matches('_');
        known == base || known.starts_with(base) || base.starts_with(known)
    };
    let near = known_ops();
    match near.iter().filter(close).max_by_key(|known| known.len()) {
        Some(known) => format!("it has no implementation; {known} has one"),
        None => "it has no implementation: describe the model with the ops of `eager`, or leave out the rule that inserts it"
            .to_owned(),
    }
}
