//! The overheads of the paper, as a table.

use steptime_answers::overheads::{KINDS, OverheadEntry};

use crate::report::format::{self, grouped, us};
use crate::report::table::Columns;

/// Number of ops or calls of each kind to show.
const ROWS: usize = 4;

/// Returns the table of all kinds, each followed by its most frequent ops or calls.
pub fn text(rows: &[OverheadEntry]) -> String {
    let mut columns = Columns::new(&["overhead", "~of", ">samples", ">median µs", ">p10 µs", ">p90 µs"]);
    let mut shown = 0;
    for row in rows {
        shown = if row.name.is_some() { shown + 1 } else { 0 };
        if shown > ROWS {
            continue;
        }
        let meaning = KINDS.iter().find(|(_, key, _)| *key == row.kind).map_or("", |(.., meaning)| meaning);
        let (kind, of) = match &row.name {
            None => (row.kind.replace('_', "-"), meaning.to_owned()),
            Some(name) => (String::new(), format!("· {}", format::op(name))),
        };
        columns.row([kind, of, grouped(row.count as u64), us(row.median_us), us(row.p10_us), us(row.p90_us)]);
    }
    if rows.is_empty() { String::new() } else { columns.text() }
}
