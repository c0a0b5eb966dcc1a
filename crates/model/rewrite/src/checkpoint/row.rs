//! A row of equal blocks, and the segments that it is divided into.

use std::ops::Range;

/// A row of equal blocks: for each, the places of its ops.
pub(super) type Row = Vec<Range<usize>>;

/// Blocks put together to so many segments, the last of which may be longer; each block is one where no number is asked for.
pub(super) fn segments(row: &Row, count: Option<usize>) -> Vec<Range<usize>> {
    let count = count.unwrap_or(row.len()).clamp(1, row.len());
    let each = row.len() / count;
    let last = |at: usize| if at + 1 == count { row.len() } else { (at + 1) * each };
    (0..count).map(|at| row[at * each].start..row[last(at) - 1].end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_segment_takes_what_is_left() {
        let row: Row = (0..5).map(|at| at * 10..at * 10 + 10).collect();
        assert!(segments(&row, Some(1)).into_iter().eq(std::iter::once(0..50)));
        assert_eq!(segments(&row, Some(2)), [0..20, 20..50]);
        assert_eq!(segments(&row, None).len(), 5);
        assert_eq!(segments(&row, Some(9)).len(), 5);
    }
}
