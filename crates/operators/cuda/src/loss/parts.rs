//! Partition of a batch into one part for each block.

use crate::Grid;

/// Threads of a block that sums a part.
pub(super) const THREADS: u32 = 1024;

/// Threads of the one block that adds the sums of all parts.
pub(super) const TOTAL_THREADS: u32 = 32;

/// Largest number of parts: one for each multiprocessor of an H100 or H200.
const MOST: usize = 132;

/// Largest batch that one block sums: a second launch takes longer than eight elements a thread.
const ONE_BLOCK: usize = 8 * THREADS as usize;

/// Smallest number of elements of a part, where there are several.
const LEAST: usize = 4 * THREADS as usize;

/// Number of parts of a batch of `len` elements; at least one.
pub(super) fn parts(len: usize) -> usize {
    if len <= ONE_BLOCK { 1 } else { len.div_ceil(LEAST).min(MOST) }
}

/// Launch that sums `parts` parts.
pub(super) fn grid(parts: usize) -> Grid {
    Grid::line(parts as u32, THREADS)
}

/// Launch that adds the sums of the parts.
pub(super) fn total_grid() -> Grid {
    Grid::line(1, TOTAL_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_batches_have_one_part_and_large_ones_as_many_as_multiprocessors() {
        assert_eq!([0, 1, 8192].map(parts), [1, 1, 1]);
        assert_eq!([8193, 16_384, 1 << 20, usize::MAX].map(parts), [3, 4, 132, 132]);
    }
}
