//! Sort of the lookups of a backward pass by row: threads, digits, tiles.

/// Places of the sorted order that one block steps: the unit of `update_rows`.
pub const WINDOW: usize = 256;

/// Widest digit whose counters, for each of 16 warps, fit a multiprocessor twice.
const MOST_BITS: u32 = 10;

/// Widest digit of a block of 32 warps.
const MOST_BITS_OF_LARGE: u32 = 8;

/// Narrowest digit: one value for each lane of a warp.
const LEAST_BITS: u32 = 5;

/// Planned lookups per bucket: three quarters of the number that one block sorts in shared memory, because batches differ.
const BUCKET: u64 = 3072;

/// Lookups of a table up to which tiles of half the size keep more multiprocessors at work.
const FEW: u64 = 1 << 16;

/// Method of sorting lookups by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SortWay {
    /// One block per table, in one launch of all digits.
    Table,
    /// Each table cut into this number of buckets, each of which one block sorts.
    Buckets(u32),
    /// All tables at once, digit after digit.
    Passes,
}

/// A sort of lookups by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowSort {
    pub way: SortWay,
    /// Threads of a block.
    pub threads: u32,
    /// Lookups per thread.
    pub items: u32,
    /// Bits of a digit, or of the bucket number.
    pub bits: u32,
    /// Digits that distinguish rows; for buckets, the passes of their blocks depend on the data.
    pub passes: u32,
}

impl RowSort {
    /// Sort for tables of at most `rows` rows, and at most `lookups` lookups in one of them.
    #[must_use]
    pub fn new(rows: u64, lookups: u64) -> RowSort {
        // The number of rows itself is the key of places without a row.
        let needed = (u64::BITS - rows.leading_zeros()).max(1);
        let (way, threads, items, most) = match lookups {
            0..=4096 => (SortWay::Table, 512, 8, MOST_BITS),
            4097..=8192 => (SortWay::Table, 1024, 8, MOST_BITS_OF_LARGE),
            _ => (SortWay::Passes, 512, 16, MOST_BITS),
        };
        let passes = needed.div_ceil(most);
        // One number more than there are buckets, for places beyond a tile's end.
        let buckets = lookups.div_ceil(BUCKET);
        if way == SortWay::Passes && buckets < 1 << MOST_BITS {
            let items = if lookups > FEW { items } else { items / 2 };
            let bits = (u64::BITS - buckets.leading_zeros()).max(LEAST_BITS);
            return RowSort { way: SortWay::Buckets(buckets as u32), threads, items, bits, passes };
        }
        RowSort { way, threads, items, bits: needed.div_ceil(passes).max(LEAST_BITS), passes }
    }

    /// Whether each table is sorted by one block.
    #[must_use]
    pub fn one_block(&self) -> bool {
        self.way == SortWay::Table
    }

    /// Number of kernels.
    #[must_use]
    pub fn kernels(&self) -> u32 {
        match self.way {
            SortWay::Table => 1,
            SortWay::Buckets(_) => 2,
            SortWay::Passes => 3 * self.passes,
        }
    }

    /// Whether sorted lookups are in another buffer than half-sorted ones.
    #[must_use]
    pub fn goes_back_and_forth(&self) -> bool {
        match self.way {
            SortWay::Table => false,
            SortWay::Buckets(_) => true,
            SortWay::Passes => self.passes > 1,
        }
    }

    /// Lookups per block.
    #[must_use]
    pub fn tile(&self) -> u32 {
        self.threads * self.items
    }

    /// Number of values of a digit.
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
            let RowSort { way, bits, passes, .. } = RowSort::new(rows, lookups);
            (way, bits, passes)
        };
        assert_eq!(of(1_000_000, 1 << 22), (SortWay::Passes, 10, 2));
        assert_eq!(of(1_000_000, 1 << 18), (SortWay::Buckets(86), 7, 2));
        assert_eq!(of(1_000_000, 8193), (SortWay::Buckets(3), 5, 2));
        assert_eq!(of(1_000_000, 4096), (SortWay::Table, 10, 2));
        assert_eq!(of(1_000_000, 8192), (SortWay::Table, 7, 3));
        assert_eq!(of(3, 10), (SortWay::Table, 5, 1));
    }

    proptest! {
        #[test]
        fn digits_tell_all_rows_apart(rows: u64, lookups in 0_u64..1 << 23) {
            let sort = RowSort::new(rows, lookups);
            match sort.way {
                SortWay::Buckets(buckets) => {
                    prop_assert!(buckets < sort.radix() && u64::from(buckets) * BUCKET >= lookups);
                }
                _ => prop_assert!(sort.bits * sort.passes >= u64::BITS - rows.leading_zeros()),
            }
            prop_assert!((LEAST_BITS..=MOST_BITS).contains(&sort.bits) && sort.passes >= 1);
            prop_assert!(!sort.one_block() || u64::from(sort.tile()) >= lookups);
        }
    }
}
