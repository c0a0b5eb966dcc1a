//! The backward pass with the optimizer: `group.cu` and `backward.cu`. The lookups are sorted by row; then groups of
//! lanes take windows of them, add up the gradients of each row, and step it. Rows of many lookups are summed in
//! chunks by blocks of their own, and stepped by a second kernel.

use steptime_aten::KernelCall;
use steptime_aten::kernel::{FusedBags, Pooling, RowOptimizer, RowSort};

use crate::device::context::Context;
use crate::device::families::lookups::moved_row;
use crate::device::families::memory::{SECTOR, Traffic};
use crate::device::families::shared::overlap;
use crate::device::families::streams::streams_us;
use crate::device::spec::DeviceSpec;

use super::{Alike, Model, alike, others};

/// Lookups of a window, and of a chunk of a long row.
const WINDOW: f64 = 256.0;

/// What is read from or written to device memory for a few bytes at random: two sectors.
const LEAST: f64 = 2.0 * SECTOR;

/// The share of the cache that gradients have, beside rows that come and go.
const GRADIENT_SHARE: f64 = 0.5;

/// Kernels that a block's tile of lookups goes through, µs of a multiprocessor (H200): counting digits of indices,
/// counting those of pairs, and moving pairs to their places.
const COUNT_INDICES_US: f64 = 4.0;
const COUNT_PAIRS_US: f64 = 2.5;
const MOVE_PAIRS_US: f64 = 9.0;

/// Adding the counts of tiles up, µs (H200): at least, and for each 32 tiles of a table.
const SCAN_US: f64 = 1.0;
const SCAN_TILES_US: f64 = 1.2;

/// A table in one block, µs (H200): to begin, and each digit by the block's size.
const ONE_BLOCK_US: f64 = 2.0;
const SMALL_DIGIT_US: f64 = 5.5;
const LARGE_DIGIT_US: f64 = 7.0;

/// One round trip of a group of lanes for rows and gradients, µs (H200); what a float of state for each row adds, and
/// one for each column.
const TRIP_US: f64 = 0.8;
const ROW_STATE_US: f64 = 0.2;
const COLUMN_STATE_US: f64 = 0.2;

/// The number of the step, and the means of bags, beside the launch, µs (H200).
const SMALL_US: f64 = 2.0;

/// A round trip of a group of lanes that sums a chunk, or a long row, µs (H200).
const CHUNK_TRIP_US: f64 = 0.6;
const RUN_TRIP_US: f64 = 1.0;

/// Floats of state for each column, and whether one more for each row.
fn state(optimizer: RowOptimizer) -> (f64, f64) {
    match optimizer {
        RowOptimizer::Sgd => (0.0, 0.0),
        RowOptimizer::RowWiseAdagrad => (0.0, 1.0),
        RowOptimizer::Adagrad | RowOptimizer::Other => (1.0, 0.0),
        RowOptimizer::Adam => (2.0, 0.0),
        RowOptimizer::PartialRowWiseAdam => (1.0, 1.0),
    }
}

fn sort_us(bags: &FusedBags, spec: &DeviceSpec) -> f64 {
    let RowSort { one_block, passes, tile } = bags.row_sort();
    let processors = f64::from(spec.multiprocessors);
    let (tables, passes) = ((bags.tables.len() as f64).max(1.0), passes as f64);
    let floor = spec.launch.floor_us;
    if one_block {
        let digit = if tile <= 4096 { SMALL_DIGIT_US } else { LARGE_DIGIT_US };
        return floor + ONE_BLOCK_US + passes * digit * (tables / processors).max(1.0);
    }
    let tiles = (bags.lookups as f64 / tile as f64).floor() + tables;
    let turns = (tiles / processors).max(1.0);
    let scan = SCAN_US + SCAN_TILES_US * tiles / tables / 32.0;
    let counts = COUNT_INDICES_US + (passes - 1.0) * COUNT_PAIRS_US;
    passes * (3.0 * floor + MOVE_PAIRS_US * turns + scan) + counts * turns
}

/// Tables of as many columns: what their kernels wait for.
struct Kind {
    dim: u64,
    lookups: f64,
    tables: f64,
    longest: f64,
}

impl Kind {
    /// Lanes of a row, and loads of a lane for one.
    fn lanes(&self, dims: u64) -> (f64, f64) {
        let fits = |vector: &u64| self.dim.is_multiple_of(*vector) && dims.is_multiple_of(*vector);
        let vector = [4, 2].into_iter().find(fits).unwrap_or(1);
        let group = self.dim.div_ceil(vector).checked_next_power_of_two().unwrap_or(32).clamp(4, 32);
        (group as f64, (self.dim as f64 / (vector * group) as f64).ceil().max(1.0))
    }
}

/// The kinds of tables.
fn kinds(tables: &[Alike]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for one in tables {
        let longest = one.popularity.largest_share() * one.lookups;
        let (dim, lookups) = (one.table.dim, one.count * one.lookups);
        match kinds.iter_mut().find(|kind| kind.dim == dim) {
            Some(kind) => {
                kind.lookups += lookups;
                kind.tables += one.count;
                kind.longest = kind.longest.max(longest);
            }
            None => kinds.push(Kind { dim, lookups, tables: one.count, longest }),
        }
    }
    kinds
}

pub(super) fn model(
    bags: &FusedBags,
    optimizer: RowOptimizer,
    call: &KernelCall,
    ctx: &Context,
    spec: &DeviceSpec,
) -> Model {
    let processors = f64::from(spec.multiprocessors);
    let floor = spec.launch.floor_us;
    let (columns, one_a_row) = state(optimizer);
    let tables = alike(bags, call, ctx, spec);
    let mut found = Model::default();
    let [given, missed, _] = others(bags, call, ctx, spec);
    // Pairs are written by the sort, and read by what follows.
    let pairs = bags.lookups as f64 * if bags.weighted { 16.0 } else { 8.0 };
    let (mut near, mut dram_read, mut near_written, mut dram_written) =
        (pairs + given, pairs + missed, 0.0, 0.0);
    for Alike { table, count, lookups, length, popularity, resident } in &tables {
        let (row, state_row) = (table.row_bytes as f64, (table.dim * 4) as f64);
        let distinct = popularity.distinct(*lookups);
        // A row of state with one float more ends between two sectors.
        let state_row = state_row + if columns > 0.0 { one_a_row * 16.0 } else { 0.0 };
        let stepped = moved_row(row) + columns * moved_row(state_row) + one_a_row * SECTOR;
        let far = moved_row(row).max(LEAST) + columns * moved_row(state_row).max(LEAST) + one_a_row * LEAST;
        // A bag's gradient is read once for each different row of the bag: the same row again comes next.
        let gradient = (table.dim * 4) as f64;
        let of_bags = bags.bags as f64;
        let wanted = of_bags * popularity.distinct(*length);
        let room = GRADIENT_SHARE * spec.l2.effective_bytes as f64 / (of_bags * gradient).max(1.0);
        let again = (wanted - of_bags).max(0.0) * gradient * (1.0 - room.min(1.0));
        near += count * (wanted * gradient + distinct * stepped);
        near_written += count * distinct * stepped;
        dram_read += count * (distinct * far * (1.0 - resident) + again);
        dram_written += count * distinct * far;
        found.table_dram += count * 2.0 * distinct * far;
        found.distinct += count * distinct;
        found.longest = found.longest.max(popularity.largest_share() * lookups);
    }
    let resident = (1.0 - dram_read / near.max(1.0)).clamp(0.0, 1.0);
    let traffic = Traffic { read: near, written: near_written, dram_read, dram_written, resident };
    found.sort_us = sort_us(bags, spec);
    found.move_us = streams_us(&traffic, spec);
    let trip = TRIP_US + one_a_row * ROW_STATE_US + columns * COLUMN_STATE_US;
    let mut ends_us = 0.0;
    for kind in kinds(&tables) {
        let (group, loads) = kind.lanes(bags.dims());
        let windows = kind.lookups / WINDOW + kind.tables;
        let (at_once, blocks) = match (loads as u64, optimizer) {
            (1, RowOptimizer::Sgd) => (3.5, 6.0),
            (1, _) => (2.0, 6.0),
            (2, _) => (2.0, 3.0),
            _ => (1.0, 3.0),
        };
        // A group goes through as many lookups as it has lanes.
        let life = (4.0 + group / at_once) * trip;
        let waves = windows / (blocks * processors);
        found.wait_us += waves.max(1.0) * life;
        let ahead = (8.0 / loads).max(2.0);
        if kind.longest >= WINDOW {
            found.work_us += WINDOW / ahead * CHUNK_TRIP_US + 2.0;
        }
        let run = if kind.longest > group / 2.0 {
            1.0 + (kind.longest.min(WINDOW) + kind.longest / WINDOW) / (4.0 * ahead) * RUN_TRIP_US
        } else {
            1.2
        };
        ends_us += 2.0 * floor + 0.5 + life * waves.min(1.0) + run;
        found.kinds += 1.0;
    }
    // The report is cleared; means of bags and the number of the step are small kernels.
    let counts = matches!(optimizer, RowOptimizer::Adam | RowOptimizer::PartialRowWiseAdam);
    let small = f64::from(u8::from(counts)) + f64::from(u8::from(bags.pooling == Pooling::Mean));
    let rows_us = overlap(overlap(found.move_us, found.wait_us), found.work_us);
    found.total_us = floor + found.sort_us + rows_us + ends_us + small * (floor + SMALL_US);
    found.traffic = traffic;
    found
}
