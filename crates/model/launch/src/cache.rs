//! Device-memory reads of lookups in a table: a closed form of the second-level cache.
//!
//! Lookups come one after the other; each brings its row into the cache, and its output takes room there too.
//! After `k` lookups the cache holds `D(k) = Σ (1 - (1 - p_i)^k)` different rows. A row stays as long as the data of the lookups
//! after it fits, so the window `k` solves `D(k) · row + k · written = effective size` (Che, Tung and Wang 2002 for
//! any popularity `p`), and a lookup misses when its row was not among the last `k`:
//! `misses = D(min(n, k)) + (n - k) · Σ p_i (1 - p_i)^k`.
//!
//! The order of launch matters: blocks that run column slice by column slice keep a slice of the whole table in
//! the cache, and sorted lookups need no cache at all.

use crate::Popularity;

/// A table and the lookups in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lookups {
    /// Rows of the table.
    pub rows: f64,
    /// Bytes of a row.
    pub row_bytes: f64,
    pub lookups: f64,
    /// Bytes written for each lookup, which take room in the cache.
    pub written: f64,
    pub order: Order,
}

/// Order in which a kernel makes its lookups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// Row after row, each whole.
    Rows,
    /// First columns of all rows, then the next ones: `slice` bytes of a row at a time, and `in_flight` such slices in flight at once.
    Columns {
        /// Bytes of a row in one slice.
        slice: f64,
        /// Slices in flight.
        in_flight: f64,
    },
    /// Sorted by row number.
    Sorted,
}

/// Bytes of the table that are read from device memory, with a cache of `cache_bytes` that holds nothing of the table at first.
#[must_use]
pub fn dram_reads(table: &Lookups, popularity: &Popularity, cache_bytes: f64) -> f64 {
    if table.lookups <= 0.0 || table.row_bytes <= 0.0 {
        return 0.0;
    }
    let (row, written) = match table.order {
        Order::Sorted => return popularity.distinct(table.lookups) * table.row_bytes,
        Order::Rows => (table.row_bytes, table.written),
        Order::Columns { slice, in_flight } => {
            // The written bytes belong to the same columns.
            let slices = (table.row_bytes / slice.max(1.0)).max(1.0);
            let live = in_flight.clamp(1.0, slices);
            (table.row_bytes / slices * live, table.written / slices * live)
        }
    };
    let window = popularity.window(row, written, cache_bytes, table.lookups);
    let misses = popularity.distinct(window) + (table.lookups - window) * popularity.missing(window);
    misses.min(table.lookups) * table.row_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Indices;
    use crate::gpu::tests::h200;

    fn seed(order: Order) -> f64 {
        let table = Lookups { rows: 8192.0, row_bytes: 16384.0, lookups: 16384.0, written: 16384.0, order };
        dram_reads(&table, &Popularity::new(8192.0, &Indices::Uniform), h200().cache_bytes) / 1e6
    }

    /// Reads from device memory measured with Nsight Compute on an H200, MB.
    #[test]
    fn orders_of_launch_on_an_h200() {
        let near = |order, measured: f64, within: f64| {
            let predicted = seed(order);
            assert!((predicted / measured - 1.0).abs() < within, "{order:?}: {predicted} against {measured}");
        };
        near(Order::Rows, 237.0, 0.10);
        near(Order::Columns { slice: 512.0, in_flight: 1.0 }, 116.0, 0.05);
        near(Order::Columns { slice: 512.0, in_flight: 32.0 }, 236.0, 0.10);
        near(Order::Columns { slice: 4096.0, in_flight: 1.0 }, 164.0, 0.05);
        near(Order::Sorted, 116.0, 0.05);
    }

    #[test]
    fn zipf_groups_add_up_to_the_exact_sums() {
        for power in [0.6, 1.0, 1.05, 1.2] {
            let rows = 100_000;
            let total: f64 = (1..=rows).map(|rank| f64::from(rank).powf(-power)).sum();
            let exact: f64 = (1..=rows)
                .map(|rank| 1.0 - (1.0 - f64::from(rank).powf(-power) / total).powf(50_000.0))
                .sum();
            let grouped = Popularity::new(f64::from(rows), &Indices::Zipf(power)).distinct(50_000.0);
            assert!((grouped / exact - 1.0).abs() < 0.01, "{power}: {grouped} against {exact}");
        }
    }

    #[test]
    fn more_cache_never_reads_more() {
        let rows = 1e6;
        let popularity = Popularity::new(rows, &Indices::Zipf(1.05));
        let table = Lookups { rows, row_bytes: 512.0, lookups: 262_144.0, written: 16.0, order: Order::Rows };
        let mut last = f64::INFINITY;
        for size in [1e5, 1e6, 1e7, 3e7, 1e8, 1e10] {
            let read = dram_reads(&table, &popularity, size);
            assert!(read <= last * (1.0 + 1e-9) && read > 0.0, "{size}: {read} after {last}");
            last = read;
        }
        assert!((last / (popularity.distinct(262_144.0) * 512.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn degenerate_tables() {
        let none = Lookups { rows: 0.0, row_bytes: 4.0, lookups: 0.0, written: 0.0, order: Order::Rows };
        assert_eq!(dram_reads(&none, &Popularity::new(0.0, &Indices::Zipf(1.1)), 1e6), 0.0);
        let empty = Popularity::new(10.0, &Indices::Histogram(Vec::new().into()));
        assert!((empty.distinct(1e9) - 10.0).abs() < 1e-6);
        let one = Lookups { rows: 1.0, row_bytes: 4.0, lookups: 100.0, written: 4.0, order: Order::Rows };
        assert!((dram_reads(&one, &Popularity::new(1.0, &Indices::Uniform), 1e3) - 4.0).abs() < 1e-6);
    }
}
