//! Launch orders of a gather: the device-memory reads and time of each, and the choice between them.
//!
//! The order in which blocks are launched decides which lookups are in flight together, and with it how much of the
//! table is read between two uses of a row. The numbers are those of the closed form in [`crate::cache`].

use crate::cache::{Lookups, Order, dram_reads};
use crate::{GatherRates, Gpu, Popularity};

/// Distribution of lookups over a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Launch {
    /// Blocks of one row each, in the order of the lookups.
    Rows,
    /// Tiles of some lookups by `slice` bytes of their rows, blocks of lookups on the grid's fast axis: all lookups of
    /// one slice of columns start before those of the next.
    LookupsFirst {
        /// Bytes of a row in a tile.
        slice: f64,
    },
    /// The same tiles, blocks of columns on the fast axis: all columns of some lookups start before the next lookups.
    ColumnsFirst {
        /// Bytes of a row in a tile.
        slice: f64,
    },
    /// Lookups sorted by row.
    Sorted,
}

/// Predicted reads and time of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct GatherPrediction {
    pub launch: Launch,
    /// Bytes read from device memory: from the table and the indices.
    pub dram_reads: f64,
    /// Share of the table's reads that the second-level cache serves.
    pub hit_rate: f64,
    /// Time of all bytes to and from device memory at the rate of their mix, plus one launch, µs.
    pub time_us: f64,
    /// Explanation in one sentence.
    pub reason: String,
}

/// Lookups of rows of a table; each row is written to the output.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Rows of the table, E.
    pub rows: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Number of lookups, N.
    pub lookups: u64,
    /// Popularity of the rows.
    pub popularity: Popularity,
}

/// Narrowest slice: a cache line.
const LINE: f64 = 128.0;

/// Bytes of an index.
const INDEX: f64 = 8.0;

impl Problem {
    /// Expected number of different rows among the lookups.
    #[must_use]
    pub fn distinct(&self) -> f64 {
        self.popularity.distinct(self.lookups as f64)
    }

    /// Predictions of all launches in this order: rows, slices from narrow to wide, columns first, sorted.
    #[must_use]
    pub fn launches(&self, gpu: &Gpu) -> Vec<GatherPrediction> {
        let row = self.row_bytes as f64;
        let mut launches = vec![Launch::Rows];
        let mut slice = LINE;
        while slice < row {
            launches.push(Launch::LookupsFirst { slice });
            slice *= 2.0;
        }
        // Only the axes matter, not the width: one tile is enough.
        if row > 4.0 * LINE {
            launches.push(Launch::ColumnsFirst { slice: 4.0 * LINE });
        }
        launches.push(Launch::Sorted);
        launches.into_iter().map(|launch| self.predict(launch, gpu)).collect()
    }

    /// Launch to choose: rows in their order unless another one saves at least a twentieth of the time; then the
    /// widest slice that is within 1 % of the fastest, since sorting costs launches of its own.
    #[must_use]
    pub fn choose(&self, gpu: &Gpu) -> GatherPrediction {
        let all = self.launches(gpu);
        let rows = all[0].clone();
        let fastest = all.iter().map(|one| one.time_us).fold(f64::INFINITY, f64::min);
        if rows.time_us <= fastest / 0.95 {
            return rows;
        }
        let good = |one: &&GatherPrediction| one.time_us <= fastest * 1.01;
        let mut slices = all.iter().filter(|one| matches!(one.launch, Launch::LookupsFirst { .. }));
        slices.rfind(good).or_else(|| all.last()).cloned().unwrap_or(rows)
    }

    /// Lookups in the form that the cache model takes.
    #[must_use]
    pub fn table(&self, launch: Launch, gpu: &Gpu) -> Lookups {
        let (rows, row, lookups) = (self.rows as f64, self.row_bytes as f64, self.lookups as f64);
        let order = match launch {
            Launch::Rows => Order::Rows,
            Launch::LookupsFirst { slice } => Order::Columns { slice, in_flight: self.slices_in_flight(gpu) },
            // All slices of the lookups in flight are in flight.
            Launch::ColumnsFirst { slice } => Order::Columns { slice, in_flight: (row / slice).max(1.0) },
            Launch::Sorted => Order::Sorted,
        };
        Lookups { rows, row_bytes: row, lookups, written: gpu.gather.output_room * row, order }
    }

    /// Slices that are read at once if all lookups of one come before those of the next.
    fn slices_in_flight(&self, gpu: &Gpu) -> f64 {
        1.0 + f64::from(gpu.multiprocessors) * gpu.gather.under_way / (self.lookups as f64).max(1.0)
    }

    /// Predicted reads and time of a launch.
    #[must_use]
    pub fn predict(&self, launch: Launch, gpu: &Gpu) -> GatherPrediction {
        let (row, lookups) = (self.row_bytes as f64, self.lookups as f64);
        let table = self.table(launch, gpu);
        let dram = dram_reads(&table, &self.popularity, gpu.cache_bytes);
        let (read, written) = (dram + lookups * INDEX, lookups * row);
        let moved = read + written;
        let GatherRates { writes_only, with_reads, .. } = gpu.gather;
        let rate = gpu.memory_gb_s * 1e3 * (writes_only + with_reads * read / moved.max(1.0)).min(1.0);
        GatherPrediction {
            launch,
            dram_reads: read,
            hit_rate: if lookups > 0.0 { 1.0 - dram / (lookups * row) } else { 0.0 },
            time_us: gpu.floor_us + moved / rate,
            reason: self.reason(launch, dram, gpu),
        }
    }

    /// Reason for the bytes of the table that a launch reads from device memory.
    fn reason(&self, launch: Launch, dram: f64, gpu: &Gpu) -> String {
        let (rows, row, lookups) = (self.rows as f64, self.row_bytes as f64, self.lookups as f64);
        let cache = gpu.cache_bytes;
        let mb = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
        let distinct = self.distinct();
        match launch {
            _ if distinct > 0.99 * lookups => {
                "hardly any row is used twice: no order can read less than one row per lookup".to_owned()
            }
            Launch::Rows => format!(
                "between two uses of a row, whole rows and their output pass through the cache: its {} hold {:.0} lookups",
                mb(cache),
                cache / ((1.0 + gpu.gather.output_room) * row)
            ),
            Launch::LookupsFirst { slice } => {
                let fits = dram <= 1.02 * distinct * row;
                format!(
                    "{} of the used rows are active at a time: they {} the cache's {} until all lookups are done",
                    mb(rows.min(distinct) * slice * self.slices_in_flight(gpu)),
                    if fits { "stay in" } else { "do not all stay, beside the output, in" },
                    mb(cache)
                )
            }
            Launch::ColumnsFirst { .. } => {
                "concurrent blocks share lookups but no byte of the table: reads are those of whole rows"
                    .to_owned()
            }
            Launch::Sorted => {
                "the uses of a row are adjacent: each row is read once with any cache; the sort is not counted"
                    .to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Indices;
    use crate::gpu::tests::h200;

    fn problem(rows: u64, row_bytes: u64, lookups: u64, indices: &Indices) -> Problem {
        Problem { rows, row_bytes, lookups, popularity: Popularity::new(rows as f64, indices) }
    }

    /// Reads measured on an H200 with Nsight Compute, MB.
    #[test]
    fn the_tiling_question_is_answered_as_measured() {
        let seed = problem(8192, 16384, 16384, &Indices::Uniform);
        let near = |launch, measured: f64, within: f64| {
            let found = seed.predict(launch, &h200()).dram_reads / 1e6;
            assert!((found / measured - 1.0).abs() < within, "{launch:?}: {found} for {measured}");
        };
        near(Launch::Rows, 237.0, 0.10);
        near(Launch::LookupsFirst { slice: 512.0 }, 116.0, 0.05);
        near(Launch::LookupsFirst { slice: 4096.0 }, 164.0, 0.10);
        near(Launch::ColumnsFirst { slice: 512.0 }, 236.0, 0.10);
        near(Launch::Sorted, 116.0, 0.05);
        assert!(matches!(seed.choose(&h200()).launch, Launch::LookupsFirst { .. }));
    }

    /// Measured on an H200 by `benches/peers/cuda_reads.py`: E, bytes of a row, N, Zipf exponent (0: uniform), and the
    /// reads in row order, in slices of 512 and of 2048 bytes (0: the row is no wider), and sorted, MB.
    const MEASURED: [(u64, u64, u64, f64, [f64; 4]); 11] = [
        (8192, 16384, 16384, 0.0, [228.1, 116.2, 121.0, 115.9]),
        (8192, 16384, 16384, 1.05, [74.8, 52.5, 52.6, 52.4]),
        (8192, 16384, 32768, 0.0, [454.8, 133.2, 165.9, 132.0]),
        (4096, 32768, 8192, 0.0, [228.0, 116.2, 116.7, 116.1]),
        (20_000, 8192, 40_000, 1.05, [88.8, 60.3, 62.6, 60.0]),
        (65_536, 4096, 65_536, 0.0, [248.6, 180.0, 230.2, 170.4]),
        (65_536, 4096, 65_536, 1.05, [76.3, 58.5, 65.3, 57.9]),
        (500_000, 2048, 200_000, 1.05, [133.8, 108.5, 0.0, 98.1]),
        (200_000, 1024, 400_000, 0.0, [371.4, 337.3, 0.0, 180.2]),
        (1_000_000, 512, 262_144, 0.0, [131.1, 0.0, 0.0, 120.2]),
        (1_000_000, 512, 262_144, 1.2, [17.8, 0.0, 0.0, 17.3]),
    ];

    #[test]
    fn reads_are_those_measured() {
        for (rows, row_bytes, lookups, zipf, measured) in MEASURED {
            let indices = if zipf > 0.0 { Indices::Zipf(zipf) } else { Indices::Uniform };
            let problem = problem(rows, row_bytes, lookups, &indices);
            let slices = [512.0, 2048.0].map(|slice| Launch::LookupsFirst { slice });
            let launches = [Launch::Rows, slices[0], slices[1], Launch::Sorted];
            for ((launch, within), measured) in
                launches.into_iter().zip([0.10, 0.05, 0.05, 0.05]).zip(measured)
            {
                let found = problem.predict(launch, &h200()).dram_reads / 1e6;
                assert!(
                    measured == 0.0 || (found / measured - 1.0).abs() < within,
                    "{rows} {row_bytes} {lookups} {zipf} {launch:?}: {found} for {measured}"
                );
            }
        }
    }

    /// Times on an H200, us (`lab/notes/cuda.md`).
    #[test]
    fn times_are_near_those_measured() {
        let seed = problem(8192, 16384, 16384, &Indices::Uniform);
        let slice = 512.0;
        for (launch, measured) in
            [(Launch::Rows, 126.0), (Launch::LookupsFirst { slice }, 104.2), (Launch::Sorted, 101.3)]
        {
            let found = seed.predict(launch, &h200()).time_us;
            assert!((found / measured - 1.0).abs() < 0.06, "{launch:?}: {found} for {measured}");
        }
    }

    #[test]
    fn the_choice_follows_the_table() {
        let launch =
            |rows, row, lookups, indices| problem(rows, row, lookups, &indices).choose(&h200()).launch;
        // The table fits the cache; hardly any row comes twice.
        assert_eq!(launch(1000, 512, 100_000, Indices::Uniform), Launch::Rows);
        assert_eq!(launch(100_000_000, 512, 100_000, Indices::Uniform), Launch::Rows);
        // Even a line of each row is too much.
        assert_eq!(launch(2_000_000, 512, 16_000_000, Indices::Uniform), Launch::Sorted);
    }

    #[test]
    fn nothing_reads_less_than_each_row_once() {
        for indices in [Indices::Uniform, Indices::Zipf(1.05), Indices::Zipf(1.2)] {
            for (rows, row, lookups) in
                [(8192, 16384, 16384), (1_000_000, 512, 262_144), (10, 4, 1), (1, 8192, 7)]
            {
                let problem = problem(rows, row, lookups, &indices);
                let least = problem.distinct() * row as f64;
                for one in problem.launches(&h200()) {
                    assert!(one.dram_reads >= least * 0.999, "{one:?}");
                    assert!((0.0..=1.0).contains(&one.hit_rate) && one.time_us > 0.0, "{one:?}");
                }
            }
        }
    }
}
