//! How the lookups of a backward pass are sorted by row: threads, digits, tiles.

/// Places of the sorted order that one block steps: what `update_rows` takes at once.
pub const WINDOW: usize = 256;

/// Widest digit whose counters, for each of 16 warps, fit a multiprocessor twice.
const MOST_BITS: u32 = 10;

/// Widest digit of a block of 32 warps.
const MOST_BITS_OF_LARGE: u32 = 8;

/// Narrowest digit: one value for each lane of a warp.
const LEAST_BITS: u32 = 5;

/// A radix sort of lookups by row, the least significant digit first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowSort {
    /// Whether each table is sorted by one block, in one launch of all digits.
    pub one_block: bool,
    /// Threads of a block.
    pub threads: u32,
    /// Lookups of a thread.
    pub items: u32,
    /// Bits of a digit.
    pub bits: u32,
    /// Digits.
    pub passes: u32,
}

impl RowSort {
    /// For tables of at most `rows` rows, and at most `lookups` lookups in one of them.
    #[must_use]
    pub fn new(rows: u64, lookups: u64) -> RowSort {
        // The number of rows itself stands for rows that are not there.
        let needed = (u64::BITS - rows.leading_zeros()).max(1);
        let (one_block, threads, items, most) = match lookups {
            0..=4096 => (true, 512, 8, MOST_BITS),
            4097..=8192 => (true, 1024, 8, MOST_BITS_OF_LARGE),
            _ => (false, 512, 16, MOST_BITS),
        };
        let passes = needed.div_ceil(most);
        RowSort { one_block, threads, items, bits: needed.div_ceil(passes).max(LEAST_BITS), passes }
    }

    /// Lookups of a block.
    #[must_use]
    pub fn tile(&self) -> u32 {
        self.threads * self.items
    }

    /// Values of a digit.
    #[must_use]
    pub fn radix(&self) -> u32 {
        1 << self.bits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_table_of_few_lookups_takes_one_block() {
        let of = |rows, lookups| {
            let RowSort { one_block, bits, passes, .. } = RowSort::new(rows, lookups);
            (one_block, bits, passes)
        };
        assert_eq!(of(1_000_000, 1 << 18), (false, 10, 2));
        assert_eq!(of(1_000_000, 4096), (true, 10, 2));
        assert_eq!(of(1_000_000, 8192), (true, 7, 3));
        assert_eq!(of(3, 10), (true, 5, 1));
    }

    proptest! {
        #[test]
        fn digits_tell_all_rows_apart(rows: u64, lookups in 0_u64..1 << 20) {
            let sort = RowSort::new(rows, lookups);
            prop_assert!(sort.bits * sort.passes >= u64::BITS - rows.leading_zeros());
            prop_assert!((LEAST_BITS..=MOST_BITS).contains(&sort.bits) && sort.passes >= 1);
            prop_assert!(!sort.one_block || u64::from(sort.tile()) >= lookups);
        }
    }
}
