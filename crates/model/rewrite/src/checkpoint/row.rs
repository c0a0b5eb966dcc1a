//! A row of equal blocks, and its division into segments.

use std::ops::Range;

/// A row of equal blocks, each as the range of its ops.
pub(super) type Row = Vec<Range<usize>>;

/// The rows of directly consecutive blocks; `of` is the block of each op, `blocks` the number of blocks.
pub(super) fn from_blocks(of: &[Option<usize>], blocks: usize) -> Vec<Row> {
    let mut places: Vec<Range<usize>> = vec![0..0; blocks];
    for (at, block) in of.iter().enumerate() {
        if let Some(block) = block.and_then(|block| places.get_mut(block)) {
            let start = if block.end > 0 { block.start } else { at };
            *block = start..at + 1;
        }
    }
    places.sort_by_key(|block| block.start);
    let mut rows: Vec<Row> = Vec::new();
    for block in places {
        match rows.last_mut().filter(|row| row.last().is_some_and(|last| last.end == block.start)) {
            Some(row) => row.push(block),
            None => rows.push(vec![block]),
        }
    }
    rows
}

/// Blocks merged into `count` segments, the last of which may be longer; without a count, one segment per block.
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
    fn blocks_with_something_between_them_are_rows_of_their_own() {
        let of = [None, Some(0), Some(0), Some(1), None, Some(2), Some(2)];
        let rows = from_blocks(&of, 3);
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        assert!(rows.concat().into_iter().eq([1..3, 3..4, 5..7]));
    }

    #[test]
    fn the_last_segment_takes_what_is_left() {
        let row: Row = (0..5).map(|at| at * 10..at * 10 + 10).collect();
        assert!(segments(&row, Some(1)).into_iter().eq(std::iter::once(0..50)));
        assert_eq!(segments(&row, Some(2)), [0..20, 20..50]);
        assert_eq!(segments(&row, None).len(), 5);
        assert_eq!(segments(&row, Some(9)).len(), 5);
    }
}
