//! The answer of `gather-plan`, as JSON, as a table, and as an explanation.

use serde::Serialize;
use steptime_answers::SCHEMA;
use steptime_cost::device::DeviceSpec;
use steptime_launch::gather_plan::{GatherPrediction, Launch, Problem};

use crate::report::format::percent;
use crate::report::table::Columns;

/// Device-memory reads of each launch order.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    pub device: String,
    pub rows: u64,
    pub dim: u64,
    pub lookups: u64,
    pub indices: String,
    /// Expected number of distinct rows among the lookups.
    pub distinct: f64,
    /// Minimum bytes of the table that any order reads.
    pub least_dram_reads: f64,
    /// Bytes of the output, which any order writes.
    pub written: f64,
    /// Bytes of the second-level cache that hold reused data.
    pub cache_bytes: u64,
    pub orders: Vec<Row>,
    /// The recommended order.
    pub choice: Row,
}

/// One order and tile.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// `rows`, `lookups first`, `columns first` or `sorted`.
    pub order: &'static str,
    /// Columns of a tile, if rows are tiled.
    pub tile_columns: Option<u64>,
    pub dram_reads: f64,
    pub hit_rate: f64,
    pub time_us: f64,
    pub reason: String,
}

impl Row {
    fn new(one: GatherPrediction) -> Row {
        let (order, slice) = match one.launch {
            Launch::Rows => ("rows", None),
            Launch::LookupsFirst { slice } => ("lookups first", Some(slice)),
            Launch::ColumnsFirst { slice } => ("columns first", Some(slice)),
            Launch::Sorted => ("sorted", None),
        };
        Row {
            order,
            tile_columns: slice.map(|slice| (slice / 4.0) as u64),
            dram_reads: one.dram_reads,
            hit_rate: one.hit_rate,
            time_us: one.time_us,
            reason: one.reason,
        }
    }

    fn name(&self) -> String {
        match self.tile_columns {
            Some(columns) => format!("{}, {columns} columns", self.order),
            None => self.order.to_owned(),
        }
    }
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1}", bytes / 1e6)
}

impl Answer {
    /// Predicts all orders for E, D and N.
    pub fn new(
        spec: &DeviceSpec,
        problem: &Problem,
        [rows, dim, lookups]: [u64; 3],
        indices: String,
    ) -> Answer {
        let row = problem.row_bytes as f64;
        Answer {
            schema: SCHEMA,
            command: "gather-plan",
            device: spec.name.clone(),
            rows,
            dim,
            lookups,
            indices,
            distinct: problem.distinct(),
            least_dram_reads: problem.distinct() * row,
            written: lookups as f64 * row,
            cache_bytes: spec.l2.effective_bytes,
            orders: problem.launches(&spec.gpu()).into_iter().map(Row::new).collect(),
            choice: Row::new(problem.choose(&spec.gpu())),
        }
    }

    /// Returns the answer as a table.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}: {} lookups ({}) of {} rows x {} columns; {:.0} different rows, {} MB; output {} MB; \
             {} MB of cache\n\n",
            self.device,
            self.lookups,
            self.indices,
            self.rows,
            self.dim,
            self.distinct,
            megabytes(self.least_dram_reads),
            megabytes(self.written),
            megabytes(self.cache_bytes as f64),
        );
        let mut columns = Columns::new(&["order", ">reads MB", ">hits", ">us"]);
        for row in &self.orders {
            let time = format!("{:.1}", row.time_us);
            columns.row([row.name(), megabytes(row.dram_reads), percent(row.hit_rate), time]);
        }
        text.push_str(&columns.text());
        text.push('\n');
        for row in &self.orders {
            text.push_str(&format!("{}: {}\n", row.name(), row.reason));
        }
        text.push_str(&format!("\nchoose {}: {}\n", self.choice.name(), self.choice.reason));
        text
    }

    /// Explains in words why one grid of tiles halves the reads and the other does not.
    pub fn explanation(&self, spec: &DeviceSpec, problem: &Problem) -> String {
        let slice = 512.0_f64.min(problem.row_bytes as f64);
        let gpu = spec.gpu();
        let of = |launch| problem.predict(launch, &gpu);
        let [rows, first, swapped, sorted] =
            [Launch::Rows, Launch::LookupsFirst { slice }, Launch::ColumnsFirst { slice }, Launch::Sorted]
                .map(of);
        let (row, lookups) = (problem.row_bytes as f64, self.lookups as f64);
        let uses = lookups / self.distinct.max(1.0);
        let mb = |bytes: f64| format!("{} MB", megabytes(bytes));
        format!(
            "A table of {} rows of {} bytes is {}; {} lookups ({}) write {}.\n\n\
             1. Possible gain. The lookups use {:.0} different rows, {:.1} times each: {} must be read, or {}\n\
             \x20  without any reuse. Every order writes the output, so that at best {:.0} % of all traffic is saved.\n\n\
             2. Row after row ({} read, {} hit). Two uses of a row are thousands of lookups apart. Each lookup\n\
             \x20  brings {} bytes of the table and as many of the output into a cache that keeps {}.\n\n\
             3. Tiles of {:.0} columns, blocks of lookups on grid axis 0 ({} read, {} hit). Axis 0 varies fastest:\n\
             \x20  all lookups of the first {:.0} columns start before any of the next columns. Until then only these\n\
             \x20  columns of the table are in use, {}: they stay in the cache, and every second use hits.\n\n\
             4. The same tiles with the axes swapped ({} read, {} hit). All columns of a block of lookups start\n\
             \x20  before the next lookups. These blocks use the same rows but read different columns: they share\n\
             \x20  indices, not one byte of the table. Reads are those of row order, and all of the gain is lost.\n\n\
             5. Sorted lookups ({} read). The uses of a row are adjacent: no cache is needed, but a sort is.\n\n\
             The gain comes from the launch order of tiles, not from their size. Choose {}: {}.\n",
            problem.rows,
            self.dim * 4,
            mb(problem.rows as f64 * row),
            self.lookups,
            self.indices,
            mb(self.written),
            self.distinct,
            uses,
            mb(self.least_dram_reads),
            mb(lookups * row),
            100.0 * (lookups * row - self.least_dram_reads) / (2.0 * lookups * row).max(1.0),
            mb(rows.dram_reads),
            percent(rows.hit_rate),
            self.dim * 4,
            mb(self.cache_bytes as f64),
            slice / 4.0,
            mb(first.dram_reads),
            percent(first.hit_rate),
            slice / 4.0,
            mb(problem.rows as f64 * slice),
            mb(swapped.dram_reads),
            percent(swapped.hit_rate),
            mb(sorted.dram_reads),
            self.choice.name(),
            self.choice.reason,
        )
    }
}
