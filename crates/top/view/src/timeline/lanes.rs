//! Arranges slices in rows: a slice inside another is a row lower, and slices in a row do not overlap.

use steptime_graph::Phase;

use super::Row;
use crate::columns::Columns;
use crate::levels;

/// An op, call or activity, in ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    pub start: u32,
    pub end: u32,
    pub name: u32,
    pub kind: u8,
    pub phase: Phase,
    pub op: u32,
}

/// Returns the rows of a lane. A slice that begins before another has ended is below it.
pub(super) fn rows(mut slices: Vec<Slice>, columns: &mut Columns) -> Vec<Row> {
    // Of two that begin together the longer is outside; an op is outside the calls in it.
    slices.sort_by_key(|slice| (slice.start, std::cmp::Reverse(slice.end), slice.kind));
    let mut rows: Vec<Vec<Slice>> = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    for slice in slices {
        while open.last().is_some_and(|&end| end <= slice.start) {
            open.pop();
        }
        if open.len() == rows.len() {
            rows.push(Vec::new());
        }
        rows[open.len()].push(slice);
        open.push(slice.end);
    }
    rows.into_iter().map(|slices| row(&slices, columns)).collect()
}

fn row(slices: &[Slice], columns: &mut Columns) -> Row {
    let spans: Vec<[u32; 2]> = slices.iter().map(|slice| [slice.start, slice.end]).collect();
    Row {
        start: columns.growing(slices.iter().map(|slice| slice.start)),
        length: columns.whole(slices.iter().map(|slice| slice.end - slice.start)),
        name: columns.whole(slices.iter().map(|slice| slice.name)),
        kind: columns.small(slices.iter().map(|slice| slice.kind)),
        phase: columns.small(slices.iter().map(|slice| phase(slice.phase))),
        op: columns.growing(slices.iter().map(|slice| slice.op)),
        levels: levels::build(&spans, columns),
    }
}

/// Returns the index of a phase in the order of output.
pub(crate) fn phase(of: Phase) -> u8 {
    Phase::ALL.iter().position(|&phase| phase == of).unwrap_or(0) as u8
}
