//! Batched embedding lookups, forward and backward with SGD: bytes moved by each warp, which makes one bag of one
//! table; a simple form, and one with the share of lookups that hit the second-level cache.
//!
//! The formulas are those of the authors' code, which is later than the paper and differs from it in constants:
//! `embedding_forward_predictor`, `embedding_backward_sgd_predictor` and their simple forms in `analysis/inference.py` of
//! `github.com/owensgroup/ml_perf_model`, commit 5b2522a of 2024-11-26. Two things differ here: rates are constants (theirs
//! fall off for small transfers), and no probability is negative.

use steptime_aten::kernel::{EmbeddingBag, FusedBags, TableBatched};

use crate::device::spec::DeviceSpec;

/// Tables of equal size looked up together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batched {
    /// Tables, `T`.
    pub tables: f64,
    /// Rows per table, `E`.
    pub rows: f64,
    /// Columns per table, `D`.
    pub dim: f64,
    /// Bags per table, `B`.
    pub batch: f64,
    /// Lookups per bag, `L`.
    pub length: f64,
}

/// Bytes of a warp's table offset.
const TABLE_OFFSETS: f64 = 32.0;

/// Bytes of a warp's row offsets, begin and end.
const ROW_OFFSETS: f64 = 64.0;

/// Share of the second-level cache that holds rows.
const CACHE_SHARE: f64 = 0.9;

/// Warps per multiprocessor of FBGEMM's forward kernel: 0.71 of 64.
const WARPS: f64 = 45.0;

/// Bytes of 32-bit numbers, in whole sectors.
fn sectors(numbers: f64) -> f64 {
    (4.0 * numbers / 32.0).ceil() * 32.0
}

impl Batched {
    /// Creates it for one table.
    #[must_use]
    pub fn from_bag(bag: &EmbeddingBag) -> Batched {
        Batched {
            tables: 1.0,
            rows: (bag.rows as f64).max(1.0),
            dim: bag.dim as f64,
            batch: (bag.bags as f64).max(1.0),
            length: bag.lookups as f64 / (bag.bags as f64).max(1.0),
        }
    }

    /// Creates it for many tables; all get the mean size.
    #[must_use]
    pub fn from_tables(tables: &TableBatched) -> Batched {
        let sizes = [tables.tables, tables.rows, tables.dims, tables.batch, tables.lookups];
        Batched::from_totals(sizes.map(|size| size as f64))
    }

    /// Creates it for tables of any sizes, all with the mean size.
    #[must_use]
    pub fn from_fused(bags: &FusedBags) -> Batched {
        let rows = bags.tables.iter().map(|table| table.rows as f64).sum();
        let [tables, dims, batch, lookups] =
            [bags.tables.len() as u64, bags.dims(), bags.bags, bags.lookups].map(|size| size as f64);
        Batched::from_totals([tables, rows, dims, batch, lookups])
    }

    /// Creates it from tables, rows and columns of all of them, bags per table, and lookups of all.
    fn from_totals([tables, rows, dims, batch, lookups]: [f64; 5]) -> Batched {
        let (tables, batch) = (tables.max(1.0), batch.max(1.0));
        Batched {
            tables,
            rows: (rows / tables).max(1.0),
            dim: dims / tables,
            batch,
            length: lookups / (tables * batch),
        }
    }

    fn warps(&self) -> f64 {
        self.tables * self.batch
    }

    /// Rows of one table that the cache holds, with `warps` warps running on each multiprocessor.
    fn cached_rows(&self, warps: f64, spec: &DeviceSpec) -> f64 {
        let running = f64::from(spec.multiprocessors) * warps;
        let tables = (running / self.batch).ceil().max(1.0);
        let room = spec.l2.bytes as f64 * CACHE_SHARE / tables / (4.0 * self.dim).max(1.0);
        room.floor().min(self.rows).min(self.batch * self.length)
    }
}

/// Forward time with every byte from device memory, µs: `embedding_forward_predictor_simple`.
#[must_use]
pub fn forward_simple(of: &Batched, spec: &DeviceSpec) -> f64 {
    let warp =
        TABLE_OFFSETS + ROW_OFFSETS + sectors(of.length) + of.length * sectors(of.dim) + sectors(of.dim);
    spec.dram_us(of.warps() * warp).max(1e-3)
}

/// Forward time with the hit rate of a cache that fills with rows under uniform lookups and then keeps them, µs:
/// `embedding_forward_predictor`.
///
/// Rows of up to 64 columns take 1.1 times as long and of up to 32 columns 1.55 times, as its authors found.
#[must_use]
pub fn forward(of: &Batched, spec: &DeviceSpec) -> f64 {
    let lookups = of.batch * of.length;
    let cached = of.cached_rows(WARPS, spec);
    let distinct = of.rows * (1.0 - (1.0 - 1.0 / of.rows).powf(lookups));
    let misses =
        if distinct > cached { cached + (lookups - cached) * (of.rows - cached) / of.rows } else { distinct };
    let hits = if lookups > 0.0 { (1.0 - misses / lookups).clamp(0.0, 1.0) } else { 0.0 };
    let weights = of.length * sectors(of.dim);
    let rest = TABLE_OFFSETS + ROW_OFFSETS + sectors(of.length) + sectors(of.dim);
    let dram = of.warps() * (rest + (1.0 - hits) * weights);
    let cache = of.warps() * hits * weights;
    let narrow = if of.dim > 64.0 {
        1.0
    } else if of.dim > 32.0 {
        1.1
    } else {
        1.55
    };
    (spec.dram_us(dram).max(spec.l2_us(cache)) * narrow).max(1e-3)
}

/// Backward time with SGD, every byte from device memory, rows read and written, µs:
/// `embedding_backward_sgd_predictor_simple`.
#[must_use]
pub fn backward_simple(of: &Batched, spec: &DeviceSpec) -> f64 {
    let warp = TABLE_OFFSETS
        + ROW_OFFSETS
        + sectors(of.length)
        + 2.0 * of.length * sectors(of.dim)
        + sectors(of.dim);
    let operations = of.warps() * of.length * 4.0 * (of.dim / 4.0).floor();
    let compute = DeviceSpec::compute_us(operations, spec.peak.f32_tflop_s);
    spec.dram_us(of.warps() * warp).max(compute).max(1e-3)
}

/// Backward time with SGD and the probability that all rows of a bag are cached, µs: `embedding_backward_sgd_predictor`,
/// with the number of warps per block of the kernel that they measured.
#[must_use]
pub fn backward(of: &Batched, spec: &DeviceSpec) -> f64 {
    // A block of that number of warps fits its rows into shared memory; 256 numbers each.
    let warps = (256.0 / of.dim.max(1.0)).floor().max(1.0);
    let running = f64::from(spec.multiprocessors) * warps;
    let together = (running / of.batch).ceil().max(1.0);
    let row = (4.0 * of.dim).max(1.0);
    let table = (spec.l2.bytes as f64 / together).min(of.rows * row);
    let cached = (table / row).floor();
    let length = of.length.round().max(0.0);
    let mut hits = 1.0;
    if cached < of.rows {
        // The product falls at each factor: for enormous bags it vanishes long before their end.
        let mut taken = 0.0;
        while taken < length && hits > 1e-9 {
            hits *= ((cached - taken) / (of.rows - taken).max(1.0)).clamp(0.0, 1.0);
            taken += 1.0;
        }
    }
    // Negative if more is cached than lookups touch: then less of the table is read, too.
    let weights = 2.0 * of.length * sectors(of.dim) * of.batch - table;
    let per_table = of.batch * (sectors(of.length) + sectors(of.dim)) + (1.0 - hits) * weights + table;
    let cache = of.tables * (of.batch * (TABLE_OFFSETS + ROW_OFFSETS) + hits * weights);
    let operations = of.warps() * of.length * 4.0 * (of.dim / 4.0).floor();
    let compute = DeviceSpec::compute_us(operations, spec.peak.f32_tflop_s);
    spec.dram_us(of.tables * per_table).max(spec.l2_us(cache)).max(compute).max(1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::families::fixture::h200;

    const LARGE: Batched = Batched { tables: 8.0, rows: 1e6, dim: 128.0, batch: 2048.0, length: 10.0 };

    /// 100 multiprocessors, 36 MB of cache; a byte from memory takes a picosecond, one from the cache a quarter.
    fn toy() -> DeviceSpec {
        let mut spec = h200();
        spec.multiprocessors = 100;
        spec.l2.bytes = 36_000_000;
        (spec.memory.rate_gb_s, spec.l2.rate_gb_s, spec.peak.f32_tflop_s) = (1000.0, 4000.0, 10.0);
        spec
    }

    fn is(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} is not {expected}");
    }

    /// Results of the authors' functions for the toy device, computed once by hand.
    #[test]
    fn forward_is_theirs_to_the_digit() {
        let spec = toy();
        // 16,384 warps of 32 + 64 + 64 + 5120 + 512 bytes.
        is(forward_simple(&LARGE, &spec), 94.896_128);
        // 4500 warps at once look into 3 tables of 21,093 cached rows each, more than the 20,480 lookups of a table
        // can fill; 20,271.72 of these are of different rows, so 1.017 % hit, and 94,043,009.8 bytes come from memory.
        is(forward(&LARGE, &spec), 94.043_009_796_550_28);
        // 204,800 lookups fill the cache: 1 - (21,093 + 183,707 * 978,907 / 1,000,000) / 204,800 = 1.892 % hit.
        is(forward(&Batched { length: 100.0, ..LARGE }, &spec), 839.766_295_547_904);
        // All 1000 rows fit: 95.117 % hit, and the cache takes longer than memory.
        is(forward(&Batched { rows: 1000.0, ..LARGE }, &spec), 19.947_520_001_292_705);
        // Narrow rows: 996,758.64 bytes of memory by 1.55, 1,731,373.27 by 1.1.
        let small = Batched { tables: 4.0, rows: 1000.0, dim: 32.0, batch: 512.0, length: 5.0 };
        is(forward(&small, &spec), 1.544_975_886_845_716_6);
        is(forward(&Batched { dim: 64.0, ..small }, &spec), 1.904_510_600_684_243_2);
    }

    #[test]
    fn backward_is_theirs_to_the_digit() {
        let spec = toy();
        // 16,384 warps of 32 + 64 + 64 + 2 * 5120 + 512 bytes.
        is(backward_simple(&LARGE, &spec), 178.782_208);
        // Blocks of 2 warps: 200 at once, all in one table, of which 70,312 rows are cached; that all ten rows of a bag
        // are has a probability of 3e-12.
        is(backward(&LARGE, &spec), 177.209_344_000_354_8);
        // A table that is cached whole: memory gives 2048 * (64 + 512) + 512,000 bytes for each, the cache
        // 2048 * 96 + 2048 * 10,240 - 512,000, which is 165,249,024 for all eight and takes longer.
        is(backward(&Batched { rows: 1000.0, ..LARGE }, &spec), 41.312_256);
        // More of a table is cached than the lookups touch: 8 * (2048 * (32 + 512) + 10,240,000) bytes.
        is(backward(&Batched { rows: 20_000.0, length: 3.0, ..LARGE }, &spec), 90.832_896);
    }

    #[test]
    fn a_warp_moves_whole_sectors() {
        // 32 + 64 + 64 + 10 * 512 + 512 bytes a warp, and 16,384 warps.
        let spec = h200();
        let expected = 16_384.0 * 5792.0 / (spec.memory.rate_gb_s * 1e3);
        assert!((forward_simple(&LARGE, &spec) / expected - 1.0).abs() < 1e-12);
        assert!(backward_simple(&LARGE, &spec) > 1.8 * forward_simple(&LARGE, &spec));
    }

    #[test]
    fn hits_save_time_where_a_table_is_small() {
        let spec = h200();
        let small = Batched { rows: 1000.0, ..LARGE };
        assert!(forward(&small, &spec) < 0.8 * forward(&LARGE, &spec));
        assert!(forward(&LARGE, &spec) <= forward_simple(&LARGE, &spec));
        assert!(backward(&small, &spec) < backward(&LARGE, &spec));
    }

    #[test]
    fn narrow_rows_cost_more() {
        let spec = h200();
        let of = |dim: f64| forward(&Batched { dim, ..LARGE }, &spec);
        assert!(of(32.0) > of(33.0) / 1.1 && of(65.0) < of(64.0) * 1.2);
    }

    #[test]
    fn odd_sizes_do_no_harm() {
        let spec = h200();
        for (rows, dim, length) in [(1.0, 0.0, 0.0), (1.0, 4096.0, 1e9), (1e12, 1.0, 0.5)] {
            let of = Batched { rows, dim, length, ..LARGE };
            for time in [forward_simple, forward, backward_simple, backward].map(|model| model(&of, &spec)) {
                assert!(time.is_finite() && time > 0.0);
            }
        }
    }
}
