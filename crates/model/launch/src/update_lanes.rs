//! Distribution of a row's update in the backward pass over lanes.

use crate::row_sort::WINDOW;

/// Number of lookups from which windows are stepped span by span: the chunks of long rows of one span are summed meanwhile.
pub const SPANS_FROM: usize = 1 << 20;

/// Least number of lanes per row: with fewer, too little of a warp's loads is contiguous.
const LEAST_LANES: usize = 4;

/// A row's update in the backward pass: `loads` vectors of `vector` columns in each of `lanes` lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UpdateLanes {
    /// Columns that a lane loads at once.
    pub vector: usize,
    /// Lanes of a row: a power of two.
    pub lanes: usize,
    /// Vectors per lane.
    pub loads: usize,
}

impl UpdateLanes {
    /// Greatest number of columns that a lane may load at once.
    #[must_use]
    pub fn vector(fits: impl Fn(usize) -> bool) -> usize {
        [4, 2].into_iter().find(|&vector| fits(vector)).unwrap_or(1)
    }

    /// Lanes for rows of `dim` columns; `fits` is whether rows, gradients and state may be read in vectors of that many columns.
    #[must_use]
    pub fn new(dim: usize, fits: impl Fn(usize) -> bool) -> UpdateLanes {
        let vector = UpdateLanes::vector(fits);
        let vectors = dim.div_ceil(vector);
        let lanes = vectors.checked_next_power_of_two().unwrap_or(crate::WARP);
        let lanes = lanes.clamp(LEAST_LANES, crate::WARP);
        UpdateLanes { vector, lanes, loads: vectors.div_ceil(lanes).max(1) }
    }

    /// Whether one launch steps all rows, those of many lookups by its last block. The limit is on the lookups of all tables.
    #[must_use]
    pub fn together(&self, lookups: usize) -> bool {
        lookups <= 2 * WINDOW * (WINDOW / self.lanes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_column_has_a_lane_and_lanes_divide_the_warp(dim in 1_usize..100_000, stride in 1_usize..100_000) {
            let fits = |vector: usize| dim.is_multiple_of(vector) && stride.is_multiple_of(vector);
            let UpdateLanes { vector, lanes, loads } = UpdateLanes::new(dim, fits);
            prop_assert!(vector * lanes * loads >= dim && vector * lanes * (loads - 1) < dim);
            prop_assert!(crate::WARP.is_multiple_of(lanes) && (vector == 1 || fits(vector)));
        }
    }
}
