//! The forward pass: `bag.cu`. A group of lanes takes a bag, or a few short ones, and walks over its lookups with
//! several rows in flight; blocks of one table come before those of the next.

use steptime_aten::KernelCall;
use steptime_aten::kernel::FusedBags;
use steptime_launch::Lanes;
use steptime_launch::cache::{Lookups, dram_reads};

use crate::device::constants;
use crate::device::context::Context;
use crate::device::families::lookups::{in_rows, moved_row};
use crate::device::families::memory::Traffic;
use crate::device::families::streams::{streams_us, written_through};
use crate::device::spec::DeviceSpec;

use super::{EqualTables, Model, alike, lanes, others};
use crate::device::families::times::{instructions_us, overlap};

/// Warps that a multiprocessor holds.
const WARPS: f64 = 32.0;

/// Steps of a stream before its first row and after its last.
const BEGIN_STEPS: f64 = 3.0;

/// Instructions of a warp for its rows in one load: a fixed part to find them, and a part per value.
fn instructions(lanes: &Lanes, bits: u64, of: &constants::FusedBags) -> f64 {
    let (find, value) =
        if bits <= 8 { (of.quantized_find, of.quantized_value) } else { (of.float_find, of.float_value) };
    find + value * lanes.values as f64
}

pub(super) fn model(bags: &FusedBags, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let processors = f64::from(spec.multiprocessors);
    let (of, memory) = (&spec.constants.fused_bags, &spec.constants.memory);
    let mut found = Model { kinds: 1.0, ..Model::default() };
    let (mut near, mut work, mut warps, mut chain_us, mut chains_us) = (0.0, 0.0, 0.0, 0.0f64, 0.0);
    for EqualTables { table, count, lookups, length, popularity, resident } in alike(bags, call, ctx, spec) {
        let row = moved_row(table.row_bytes as f64);
        let pooled = table.dim as f64 * 4.0 / length.max(1.0);
        let all = Lookups { lookups, ..in_rows(table.rows, 0, table.row_bytes as f64, pooled) };
        let missed = dram_reads(&all, &popularity, spec.l2.effective_bytes as f64) / row * (1.0 - resident);
        // Rows that are not in a multiprocessor's own cache are read from the second-level cache.
        let own = Lookups { lookups: lookups / processors, written: 0.0, ..all };
        near += count * (dram_reads(&own, &popularity, of.near_cache) * processors).min(lookups * row);
        found.table_dram += count * missed * row.max(spec.constants.streams.least_access);
        found.distinct += count * popularity.distinct(lookups);
        found.longest = found.longest.max(popularity.largest_share() * lookups);
        let (lanes, streams) = lanes(&table, bags, spec);
        let [groups, together] = [lanes.groups(), streams.together].map(|count| count as f64);
        let [loads, ranges] = [lanes.passes * lanes.ranges, lanes.ranges].map(|count| count as f64);
        work += count * lookups * loads * instructions(&lanes, bags.element_bits, of) / groups;
        let own_warps = count * ranges * (bags.bags as f64 / (groups * together)).ceil();
        warps += own_warps;
        let step = memory.step_us + memory.dram_step_us * (missed / lookups.max(1.0)).min(1.0);
        let chain = (BEGIN_STEPS + length * together / streams.in_flight as f64) * step;
        chains_us += own_warps * chain;
        if chain > chain_us {
            (chain_us, found.lanes) = (chain, Some((lanes, streams)));
        }
    }
    found.warps = warps;
    let [read, missed, written] = others(bags, call, ctx, spec);
    let dram_read = found.table_dram + missed;
    let through = written_through(written, dram_read + written, spec);
    let resident = (1.0 - dram_read / (near + read).max(1.0)).clamp(0.0, 1.0);
    let traffic = Traffic { read: near + read, written, dram_read, dram_written: through, resident };
    found.move_us = streams_us(&traffic, spec);
    found.wait_us = (chains_us / (WARPS * processors)).max(chain_us);
    found.work_us = instructions_us(work * 32.0, spec);
    found.total_us =
        spec.launch.floor_us + of.begin_us + overlap(overlap(found.move_us, found.wait_us), found.work_us);
    found.traffic = traffic;
    found
}
