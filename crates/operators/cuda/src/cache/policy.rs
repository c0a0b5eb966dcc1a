//! Placement of rows in a cache, and choice of the evicted row.

/// Number of places in a set: one for each lane of a warp.
pub const WAYS: usize = 32;

/// The row number of an empty place.
pub(super) const NO_ROW: u32 = u32::MAX;

/// Choice of the row of a set that is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// The row whose last batch is longest ago.
    #[default]
    Lru,
    /// The row that the fewest batches used since it was fetched; of several, the one whose last batch is longest ago.
    Lfu,
}

/// Assignment of the E rows of a table to sets.
///
/// Row `r` belongs to set `r mod sets`, so neighbours are in neighbouring sets. Adjacent hot rows are spread evenly,
/// and sets that are processed together move rows that are near each other on the host, which the link's address
/// translation needs. The number of sets is odd, so that rows a power of two apart are spread too. Rows of a set have
/// keys of one range, in the order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sets {
    pub(super) rows: u32,
    pub(super) sets: u32,
    pub(super) span: u32,
}

impl Sets {
    /// Largest number of rows of a table: keys are 32 bits.
    pub const MOST_ROWS: usize = 1 << 31;

    /// Sets for a table of `rows` rows and a cache of about `slots`: at least one set, at most about one place for each
    /// row, rounded up to an odd number of whole sets.
    ///
    /// # Panics
    ///
    /// `rows` is 0 or more than [`Sets::MOST_ROWS`].
    #[must_use]
    pub fn new(rows: usize, slots: usize) -> Sets {
        assert!(rows > 0 && rows <= Sets::MOST_ROWS, "a table has 1 to 2^31 rows");
        let sets = slots.min(rows).div_ceil(WAYS) | 1;
        Sets { rows: rows as u32, sets: sets as u32, span: rows.div_ceil(sets) as u32 }
    }

    /// Sets for a table of `rows` rows in which the rows of a batch fit: not many more than the fewest. Indices out of range are ignored.
    ///
    /// # Panics
    ///
    /// As [`Sets::new`].
    #[must_use]
    pub fn for_batch(rows: usize, indices: &[i64]) -> Sets {
        let mut wanted: Vec<u32> = indices
            .iter()
            .filter_map(|&row| u32::try_from(row).ok())
            .filter(|&row| (row as usize) < rows)
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut slots = wanted.len();
        loop {
            let sets = Sets::new(rows, slots);
            let mut counts = vec![0; sets.sets as usize];
            wanted.iter().for_each(|row| counts[(row % sets.sets) as usize] += 1);
            // With as many places as rows there is room for all.
            if slots >= rows || counts.iter().all(|&count| count <= WAYS) {
                return sets;
            }
            slots += slots / 16 + WAYS;
        }
    }

    /// Number of places in all sets.
    #[must_use]
    pub fn slots(self) -> usize {
        self.sets as usize * WAYS
    }

    /// Bytes on the device for a cache of these sets, whose rows and their states have `row` bytes.
    #[must_use]
    pub fn device_bytes(self, row: usize) -> usize {
        // Row, last batch, number of batches and evicted row of each place, arrived rows of each set, and a bit of each key.
        let each = WAYS * (row + 16) + 4;
        (self.sets as usize).saturating_mul(each).saturating_add(self.keys() / 8)
    }

    /// Largest number of rows that share a set.
    #[must_use]
    pub fn rows_of_a_set(self) -> usize {
        self.span as usize
    }

    /// Number of keys; a few of them have no row.
    pub(super) fn keys(self) -> usize {
        self.sets as usize * self.span as usize
    }

    /// The key of a row.
    pub(super) fn key(self, row: u32) -> u32 {
        row % self.sets * self.span + row / self.sets
    }

    /// The row of a key.
    pub(super) fn row(self, key: u32) -> u32 {
        key / self.span + key % self.span * self.sets
    }
}

/// A place of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    /// The row, or [`NO_ROW`].
    pub(super) row: u32,
    /// The last batch that used the row.
    pub(super) stamp: u32,
    /// Number of batches that used the row since it was fetched.
    pub(super) count: u32,
    /// Whether the row differs from the host's.
    pub(super) dirty: bool,
}

/// Returns the place whose row is evicted: an empty one if there is one; never one that batch `protect` or a later one
/// uses.
pub(super) fn victim(policy: Policy, ways: &[Way; WAYS], protect: u32) -> Option<usize> {
    let order = |at: &usize| {
        let way = ways[*at];
        match policy {
            _ if way.row == NO_ROW => (0, 0, 0, *at),
            Policy::Lru => (1, way.stamp, 0, *at),
            Policy::Lfu => (1, way.count, way.stamp, *at),
        }
    };
    (0..WAYS).filter(|&at| ways[at].row == NO_ROW || ways[at].stamp < protect).min_by_key(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_rows_apart_and_neighbours_are_spread() {
        for rows in [1, 2, 3, 6, 31, 32, 33, 1000, 65536, 99_991] {
            let sets = Sets::new(rows, rows / 7);
            let mut seen = vec![false; sets.keys()];
            for row in 0..rows as u32 {
                let key = sets.key(row);
                assert_eq!(sets.row(key), row);
                assert!(!std::mem::replace(&mut seen[key as usize], true));
                assert!(key / sets.span < sets.sets);
            }
        }
        let sets = Sets::new(Sets::MOST_ROWS, 1 << 22);
        assert_eq!(sets.row(sets.key(u32::MAX >> 1)), u32::MAX >> 1);
        assert!(u32::try_from(Sets::new(Sets::MOST_ROWS, usize::MAX).keys()).is_ok());
        // As many rows as there are sets, adjacent or a power of two apart, have one set each.
        for step in [1, 256] {
            let sets = Sets::new(1 << 26, 1 << 20);
            let of: std::collections::BTreeSet<u32> =
                (0..sets.sets).map(|at| at * step % sets.sets).collect();
            assert_eq!(of.len(), sets.sets as usize);
        }
    }

    #[test]
    fn a_cache_has_whole_sets_and_hardly_more_than_the_table() {
        let of = |rows, slots| {
            let sets = Sets::new(rows, slots);
            (sets.sets, sets.span, sets.slots())
        };
        assert_eq!(of(1000, 0), (1, 1000, 32));
        assert_eq!(of(1000, 33), (3, 334, 96));
        assert_eq!(of(10, 1 << 40), (1, 10, 32));
        assert_eq!(of(1 << 20, 1 << 20), ((1 << 15) + 1, 32, (1 << 20) + 32));
        assert_eq!(Sets::new(1000, 33).device_bytes(64), 3 * (32 * 80 + 4) + 3 * 334 / 8);
    }

    #[test]
    fn sets_for_a_batch_have_room_for_it() {
        let rows: Vec<i64> = (0..40).chain([-1, 1000]).collect();
        assert_eq!(Sets::for_batch(1000, &rows).slots(), 96);
        assert_eq!(Sets::for_batch(1000, &[5; 100]).slots(), 32);
        assert_eq!(Sets::for_batch(40, &rows), Sets::new(40, 40));
        // Rows that share a set of three, but not one of five.
        let apart: Vec<i64> = (0..40).map(|row| 3 * row).collect();
        assert_eq!(Sets::for_batch(1000, &apart).slots(), 160);
    }

    #[test]
    fn empty_places_go_first_and_protected_ones_stay() {
        let way = |row, stamp, count| Way { row, stamp, count, dirty: false };
        let mut ways = [way(1, 9, 1); WAYS];
        assert_eq!(victim(Policy::Lru, &ways, 9), None);
        ways[4] = way(2, 3, 7);
        ways[7] = way(3, 4, 2);
        ways[8] = way(4, 5, 2);
        assert_eq!(victim(Policy::Lru, &ways, 9), Some(4));
        assert_eq!(victim(Policy::Lfu, &ways, 9), Some(7));
        ways[20] = way(NO_ROW, 0, 0);
        assert_eq!(victim(Policy::Lfu, &ways, 9), Some(20));
    }
}
