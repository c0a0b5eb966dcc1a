//! The backward pass with the optimizer: `group_*.cu` and `backward.cu`. The lookups are sorted by row; then groups of
//! lanes take windows of them, add up the gradients of each row, and step it. Rows of many lookups are summed in
//! chunks by separate blocks, and stepped by a second kernel.

use steptime_aten::KernelCall;
use steptime_aten::kernel::{FusedBags, Pooling, RowOptimizer};
use steptime_launch::{SPANS_FROM, SortWay, UpdateLanes};

use crate::device::context::Context;
use crate::device::families::lookups::moved_row;
use crate::device::families::memory::{SECTOR, Traffic};
use crate::device::families::streams::streams_us;
use crate::device::spec::DeviceSpec;

use super::{EqualTables, Model, alike, others};
use crate::device::families::times::overlap;

/// Lookups per window, and per chunk of a long row.
const WINDOW: f64 = steptime_launch::WINDOW as f64;

/// Lookups of the tile that `partition_us` refers to.
const PARTITION_TILE: f64 = 8192.0;

/// Number of buckets that a multiprocessor sorts in the time of one.
const BUCKETS_AT_ONCE: f64 = 2.0;

/// Device-memory traffic of a few bytes at random: two sectors.
const LEAST: f64 = 2.0 * SECTOR;

/// Floats of state per column, and 1 if there is one more per row.
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
    let sort = bags.row_sort();
    let of = &spec.constants.fused_backward;
    let processors = f64::from(spec.multiprocessors);
    let (tables, passes) = ((bags.tables.len() as f64).max(1.0), f64::from(sort.passes));
    let floor = spec.launch.floor_us;
    if sort.one_block() {
        let digit = if sort.tile() <= 4096 { of.small_digit_us } else { of.large_digit_us };
        return floor + of.one_block_us + passes * digit * (tables / processors).max(1.0);
    }
    let tiles = (bags.lookups as f64 / f64::from(sort.tile())).floor() + tables;
    let turns = (tiles / processors).max(1.0);
    if let SortWay::Buckets(buckets) = sort.way {
        let size = f64::from(sort.tile()) / PARTITION_TILE;
        // Tables of fewer lookups have as many buckets with less in each.
        let full = bags.lookups as f64 / (bags.most_lookups() as f64).max(1.0);
        let sorted = (full * f64::from(buckets) / processors).max(BUCKETS_AT_ONCE);
        return 2.0 * floor + of.partition_us * size * turns + of.bucket_us * sorted;
    }
    let scan = of.scan_us + of.scan_tiles_us * tiles / tables / 32.0;
    let counts = of.count_indices_us + (passes - 1.0) * of.count_pairs_us;
    passes * (3.0 * floor + of.move_pairs_us * turns + scan) + counts * turns
}

/// Tables with the same number of columns, with the data that their kernels' waits depend on.
struct Kind {
    dim: u64,
    /// Lookups of rows whose lookups fit into a window: groups of lanes end at once if all of theirs are of a longer row.
    lookups: f64,
    tables: f64,
    longest: f64,
}

impl Kind {
    /// Lanes that share a row.
    fn lanes(&self, dims: u64) -> UpdateLanes {
        let fits = |vector| [self.dim, dims].iter().all(|all| all.is_multiple_of(vector as u64));
        UpdateLanes::new(self.dim as usize, fits)
    }

    /// Waits of its kernels, with the layout of these bags' tables.
    fn waits(&self, bags: &FusedBags, optimizer: RowOptimizer, spec: &DeviceSpec) -> Waits {
        let processors = f64::from(spec.multiprocessors);
        let floor = spec.launch.floor_us;
        let of = &spec.constants.fused_backward;
        let (columns, one_a_row) = state(optimizer);
        let trip = of.trip_us + one_a_row * of.row_state_us + columns * of.column_state_us;
        let lanes = self.lanes(bags.dims());
        let (group, loads) = (lanes.lanes as f64, lanes.loads as f64);
        let launches = if lanes.together(bags.lookups as usize) { 1.0 } else { 2.0 };
        let windows = self.lookups / WINDOW + self.tables;
        let (at_once, blocks) = match (loads as u64, optimizer) {
            (1, RowOptimizer::Sgd) => (3.5, 6.0),
            (1, _) => (2.0, 6.0),
            (2, _) => (2.0, 3.0),
            _ => (1.0, 3.0),
        };
        // A group goes through as many lookups as it has lanes.
        let life = (4.0 + group / at_once) * trip;
        let waves = windows / (blocks * processors);
        let ahead = (8.0 / loads).max(2.0);
        let run = if self.longest > group / 2.0 {
            1.0 + (self.longest.min(WINDOW) + self.longest / WINDOW) / (4.0 * ahead) * of.run_trip_us
        } else {
            1.2
        };
        Waits {
            wait_us: waves.max(1.0) * life,
            // The chunks of a span are summed while the windows of the one before are stepped.
            work_us: if self.longest >= WINDOW && (bags.lookups as usize) < SPANS_FROM {
                WINDOW / ahead * of.chunk_trip_us + 2.0
            } else {
                0.0
            },
            ends_us: launches * floor + 0.5 + life * waves.min(1.0) + run,
        }
    }
}

/// Waits of the kernels of a kind, µs.
struct Waits {
    /// Groups of lanes, from their begin to their end, times the waves of them.
    wait_us: f64,
    /// The chunks of long rows.
    work_us: f64,
    /// The floors of the kernels, and their last windows and rows.
    ends_us: f64,
}

/// Tables grouped by their number of columns.
fn kinds(tables: &[EqualTables]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for one in tables {
        let longest = one.popularity.largest_share() * one.lookups;
        let of_long = one.popularity.share_above(WINDOW / one.lookups.max(1.0));
        let (dim, lookups) = (one.table.dim, one.count * one.lookups * (1.0 - of_long));
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
    let floor = spec.launch.floor_us;
    let of = &spec.constants.fused_backward;
    let tables = alike(bags, call, ctx, spec);
    let [given, missed, _] = others(bags, call, ctx, spec);
    let mut found = moved(bags, optimizer, &tables, [given, missed], spec);
    found.sort_us = sort_us(bags, spec);
    found.move_us = streams_us(&found.traffic, spec);
    let mut ends_us = 0.0;
    for kind in kinds(&tables) {
        let waits = kind.waits(bags, optimizer, spec);
        found.wait_us += waits.wait_us;
        found.work_us += waits.work_us;
        ends_us += waits.ends_us;
        found.kinds += 1.0;
    }
    // The report is cleared; means of bags and the step counter are small kernels.
    let counts = matches!(optimizer, RowOptimizer::Adam | RowOptimizer::PartialRowWiseAdam);
    let small = f64::from(u8::from(counts)) + f64::from(u8::from(bags.pooling == Pooling::Mean));
    let rows_us = overlap(overlap(found.move_us, found.wait_us), found.work_us);
    found.total_us = floor + found.sort_us + rows_us + ends_us + small * (floor + of.small_us);
    found
}

/// Traffic of gradients, rows and their state; `others` are the bytes read apart from the tables, and the part of them from
/// device memory.
fn moved(
    bags: &FusedBags,
    optimizer: RowOptimizer,
    tables: &[EqualTables],
    others: [f64; 2],
    spec: &DeviceSpec,
) -> Model {
    let of = &spec.constants.fused_backward;
    let (columns, one_a_row) = state(optimizer);
    let mut found = Model::default();
    // Pairs are written by the sort, and read by the later kernels.
    let pairs = bags.lookups as f64 * if bags.weighted { 16.0 } else { 8.0 };
    let [mut near, mut dram_read] = others.map(|bytes| pairs + bytes);
    let (mut near_written, mut dram_written) = (0.0, 0.0);
    for EqualTables { table, count, lookups, length, popularity, resident } in tables {
        let (row, state_row) = (table.row_bytes as f64, (table.dim * 4) as f64);
        let distinct = popularity.distinct(*lookups);
        // A row of state with one float more ends between two sectors.
        let state_row = state_row + if columns > 0.0 { one_a_row * 16.0 } else { 0.0 };
        let stepped = moved_row(row) + columns * moved_row(state_row) + one_a_row * SECTOR;
        let far = moved_row(row).max(LEAST) + columns * moved_row(state_row).max(LEAST) + one_a_row * LEAST;
        // A bag's gradient is read once for each different row of the bag: lookups of the same row are adjacent.
        let gradient = (table.dim * 4) as f64;
        let of_bags = bags.bags as f64;
        let wanted = of_bags * popularity.distinct(*length);
        let room = of.gradient_share * spec.l2.effective_bytes as f64 / (of_bags * gradient).max(1.0);
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
    found.traffic = Traffic { read: near, written: near_written, dram_read, dram_written, resident };
    found
}
