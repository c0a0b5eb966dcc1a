//! Plan of the sort of lookups: tiles and memory.

use steptime_launch::{RowSort, SortWay, WINDOW};

use super::Payload;
use crate::geometry::Geometry;
use crate::{Error, Grid};

/// Threads of a block of `sort_buckets`, and largest number of tiles of a table.
pub(super) const SORTERS: u32 = 512;

/// Lookups that a block of `sort_buckets` sorts in shared memory: eight a thread.
const BUCKET_ITEMS: u32 = 8;

/// Bits of the values by which tables are cut into buckets: of a row, of the upper part of its payload that is kept,
/// and of the lower part that is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueBits {
    pub(super) key: u32,
    pub(super) kept: u32,
    pub(super) cut: u32,
}

/// A sort for a set of tables and a number of lookups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupPlan {
    pub(super) sort: RowSort,
    tables: usize,
    lookups: usize,
    bags: usize,
    most_rows: u32,
}

impl GroupPlan {
    /// A plan for tables with these numbers of rows, and `lookups` lookups in all, at most `longest` of one table.
    pub(super) fn new(rows: &[u32], bags: usize, lookups: usize, longest: usize) -> Result<GroupPlan, Error> {
        let unsupported = |what, remedy| Err(Error::Unsupported { what, remedy });
        if rows.is_empty() || rows.len() > 65_535 {
            return unsupported(format!("grouping for {} tables", rows.len()), "give 1 to 65535 tables");
        }
        let places = lookups.div_ceil(WINDOW).saturating_add(rows.len() + 4).saturating_mul(WINDOW);
        if u32::try_from(places).is_err() || u32::try_from(rows.len().saturating_mul(bags)).is_err() {
            return unsupported(
                format!("grouping {lookups} lookups in {bags} bags of {} tables", rows.len()),
                "kernels count in 32 bits: cut the batch into parts",
            );
        }
        let most = rows.iter().copied().max().unwrap_or(0);
        let sort = RowSort::new(u64::from(most), longest.min(lookups) as u64);
        let tables = rows.len();
        Ok(GroupPlan { sort, tables, lookups, bags, most_rows: most })
    }

    /// Number of lookups of a block.
    pub(super) fn tile(&self) -> usize {
        self.sort.tile() as usize
    }

    /// Largest number of lookups of a table that its kernels can sort, if bounded.
    pub(super) fn most_of_table(&self) -> Option<usize> {
        match self.sort.way {
            SortWay::Table => Some(self.tile()),
            SortWay::Buckets(_) => Some(self.tile() * SORTERS as usize),
            SortWay::Passes => None,
        }
    }

    /// Number of buckets of a table.
    pub(super) fn buckets(&self) -> usize {
        if let SortWay::Buckets(buckets) = self.sort.way { buckets as usize } else { 0 }
    }

    /// Composition of values from rows and payloads; the latter increase with a lookup's position.
    pub(super) fn values(&self, payload: Payload) -> ValueBits {
        let bits = |most: usize| usize::BITS - most.leading_zeros();
        let of_payload = bits(if payload == Payload::Bag { self.bags } else { self.lookups });
        let key = bits(self.most_rows as usize).max(1);
        let kept = of_payload.min(32 - key);
        ValueBits { key, kept, cut: of_payload - kept }
    }

    /// Number of lanes that copy a tile's part of a bucket.
    pub(super) fn run_lanes(&self) -> usize {
        (self.tile() / self.buckets().max(1)).next_power_of_two().clamp(8, 32)
    }

    /// Bytes of dynamic shared memory of `sort_buckets`: the pairs of a bucket.
    pub(super) fn shared_of_bucket() -> u32 {
        SORTERS * BUCKET_ITEMS * 8
    }

    /// Largest number of tiles of all tables.
    pub(super) fn tiles(&self) -> usize {
        self.lookups / self.tile() + self.tables
    }

    /// Number of values of a digit.
    pub(super) fn radix(&self) -> usize {
        self.sort.radix() as usize
    }

    /// Bytes of shared memory for a tile's pairs, and, before it, for each warp's counts and masks of each digit.
    pub(super) fn shared(&self) -> u32 {
        let counters = self.sort.threads / 32 * self.radix() as u32 * 6;
        counters.max(self.tile() as u32 * 8)
    }

    /// Number of windows of all tables, each of which begins with one.
    pub(super) fn windows(&self) -> usize {
        self.lookups.div_ceil(WINDOW) + self.tables
    }

    /// Number of places of all windows, plus some that groups may look at beyond the last.
    pub(super) fn places(&self) -> usize {
        (self.windows() + 2) * WINDOW
    }

    /// Launch geometry of the kernels.
    pub(super) fn geometry(&self) -> Vec<Geometry> {
        let one = |kernel, grid, axes, lanes: &str, divergence| Geometry {
            kernel,
            grid,
            axes,
            registers: None,
            lanes: lanes.to_owned(),
            busy: 1.0,
            bounds: "indices and offsets by the first kernel; rows that are not there sort last",
            divergence,
        };
        let threads = self.sort.threads;
        let tiles = Grid::line(self.tiles() as u32, threads);
        let scan = Grid::plane(self.radix() as u32 / 32, self.tables as u32, 1024);
        let (items, bits) = (self.sort.items, self.sort.bits);
        let sorting = format!("{items} lookups a lane, by digits of {bits} bits");
        let none = "none but in the last tile of a table";
        if self.sort.way == SortWay::Table {
            let grid = Grid::line(self.tables as u32, threads).shared(self.shared());
            let short = "none but beyond a table's last lookup, where lanes carry padding";
            return vec![one("sort_tables", grid, "x tables", &sorting, short)];
        }
        let wide = tiles.shared(self.shared());
        if let SortWay::Buckets(buckets) = self.sort.way {
            let cutting = format!("{items} lookups a lane, by {buckets} buckets");
            let grid =
                Grid::plane(buckets, self.tables as u32, SORTERS).shared(GroupPlan::shared_of_bucket());
            let short = "none but beyond a bucket's last lookup, where lanes carry padding";
            let sorting = format!("{BUCKET_ITEMS} lookups a lane, by slots or by digits of 7 bits");
            return vec![
                one("partition", wide, "x tiles", &cutting, none),
                one("sort_buckets", grid, "x buckets, y tables", &sorting, short),
            ];
        }
        let counting = format!("{items} lookups a lane");
        let share = "warps without a tile only take part in the sum";
        vec![
            one("count_indices", tiles, "x tiles", &counting, none),
            one("scan", scan, "x digits, y tables", "a digit a lane, a share of the tiles a warp", share),
            one("scatter_indices", wide, "x tiles", &sorting, none),
            one("count_pairs", tiles, "x tiles", &counting, none),
            one("scatter_pairs", wide, "x tiles", &sorting, none),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_pairs_fit_shared_memory() {
        for rows in [1, 2, 31, 1000, 1024, 80_000, 1_000_000, 10_131_227, u32::MAX - 1] {
            for longest in [1, 4096, 8192, 1 << 20] {
                let plan = GroupPlan::new(&[rows], 8192, 1 << 22, longest).unwrap();
                assert!(plan.shared() <= 227 << 10, "{plan:?}");
                assert!(!plan.sort.one_block() || plan.tile() >= longest);
            }
        }
        let big = GroupPlan::new(&[1_000_000; 16], 8192, 1 << 22, 1 << 18).unwrap();
        assert_eq!((big.buckets(), big.sort.bits, big.tiles(), big.run_lanes()), (86, 7, 528, 32));
        assert_eq!(big.most_of_table(), Some(1 << 22));
    }

    #[test]
    fn values_keep_what_fits_32_bits() {
        let values = |rows, bags, lookups, payload| {
            let ValueBits { key, kept, cut } =
                GroupPlan::new(&[rows], bags, lookups, lookups).unwrap().values(payload);
            [key, kept, cut]
        };
        assert_eq!(values(1_000_000, 8192, 1 << 20, Payload::Bag), [20, 12, 2]);
        assert_eq!(values(1_000_000, 8192, 1 << 20, Payload::Position), [20, 12, 9]);
        assert_eq!(values(u32::MAX, 8192, 1 << 20, Payload::Bag), [32, 0, 14]);
        assert_eq!(values(1, 1, 1 << 20, Payload::Bag), [1, 1, 0]);
    }

    #[test]
    fn sizes_beyond_32_bits_are_refused() {
        assert!(GroupPlan::new(&[], 1, 1, 1).is_err());
        let error = GroupPlan::new(&[10], 1, 1 << 32, 1 << 32).unwrap_err().to_string();
        assert!(error.contains("cut the batch"), "{error}");
        assert!(GroupPlan::new(&[10; 1000], 1 << 30, 10, 10).is_err());
    }

    #[test]
    fn geometry_is_printed_for_each_kernel() {
        let plan = GroupPlan::new(&[1000; 4], 512, 10_240, 2560).unwrap();
        let printed: Vec<String> = plan.geometry().iter().map(ToString::to_string).collect();
        assert_eq!(printed.len(), 1);
        assert!(printed[0].contains("sort_tables: grid 4 x 1 x 1"), "{printed:?}");
        let kernels = |longest| GroupPlan::new(&[1000], 512, longest, longest).unwrap().geometry().len();
        assert_eq!([kernels(8192), kernels(8193), kernels(1 << 22)], [1, 2, 5]);
    }
}
