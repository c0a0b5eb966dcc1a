//! Pooled lookups in many tables in one launch, and the backward pass that groups the lookups by row and steps each
//! row once: steptime's kernels.

mod backward;
mod forward;
#[cfg(test)]
mod tests;

use steptime_aten::kernel::{FusedBags, FusedTable, RowOptimizer};
use steptime_aten::{Kernel, KernelCall, Role, Slot};
use steptime_launch::{Lanes, Popularity, RowLayout, Streams};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::PaperModel;
use crate::device::paper::embedding;
use crate::device::spec::DeviceSpec;

use super::embedding_bag::pooling;
use super::memory::Traffic;
use super::shared::{features, flag, halvings, ln, ln_ratio, push_shared};

pub(super) struct Fused;

/// Tables of one size with the same number of lookups.
struct EqualTables {
    table: FusedTable,
    /// Number of these tables.
    count: f64,
    /// Lookups per table.
    lookups: f64,
    /// Lookups per bag.
    length: f64,
    popularity: Popularity,
    /// Share of a table that is in the cache beforehand.
    resident: f64,
}

/// Results of a formula.
#[derive(Default)]
struct Model {
    traffic: Traffic,
    /// Bytes of the tables that are read from device memory.
    table_dram: f64,
    /// Different rows of all tables.
    distinct: f64,
    /// Lookups of the most popular row of any table.
    longest: f64,
    /// Kernels that update rows, each for tables of other columns.
    kinds: f64,
    /// Warps of the forward pass.
    warps: f64,
    /// Lanes of the table whose streams take longest, in the forward pass.
    lanes: Option<(Lanes, Streams)>,
    /// Time of the sort, µs.
    sort_us: f64,
    /// Time to move bytes, µs.
    move_us: f64,
    /// Wait of a warp or block from its begin to its end, times their waves, µs.
    wait_us: f64,
    /// Time of instructions, or of the sums of the chunks of long rows, µs.
    work_us: f64,
    total_us: f64,
}

/// Tables grouped by size, in the order in which each size comes first.
fn alike(bags: &FusedBags, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Vec<EqualTables> {
    let list = u16::from(bags.update.is_some());
    let mut resident = vec![0.0; bags.tables.len()];
    for (at, operand) in call.operands.iter().enumerate() {
        if let Slot::Input(arg, table) = operand.slot
            && arg == list
            && let Some(resident) = resident.get_mut(usize::from(table))
        {
            *resident = ctx.residency(at, spec);
        }
    }
    let mut sizes: Vec<EqualTables> = Vec::new();
    for (&table, resident) in bags.tables.iter().zip(resident) {
        match sizes.iter_mut().find(|one| one.table == table) {
            Some(known) => {
                known.resident += (resident - known.resident) / (known.count + 1.0);
                known.count += 1.0;
            }
            None => sizes.push(EqualTables {
                table,
                count: 1.0,
                lookups: table.lookups as f64,
                length: table.lookups as f64 / (bags.bags as f64).max(1.0),
                popularity: Popularity::new(table.rows as f64, &ctx.indices),
                resident,
            }),
        }
    }
    sizes
}

/// Lanes that share the rows of a table, and its streams: rows of bytes or nibbles have a scale and a bias of two bytes.
fn lanes(table: &FusedTable, bags: &FusedBags, spec: &DeviceSpec) -> (Lanes, Streams) {
    let (bits, row) = (bags.element_bits as usize, table.row_bytes as usize);
    let header = if bits <= 8 { 4 } else { 0 };
    let payload = row.saturating_sub(header);
    let align = 1 << row.trailing_zeros().min(4);
    let lanes = Lanes::for_bags(&RowLayout { dim: table.dim as usize, bits, header, payload, align });
    let all = (bags.bags as usize).saturating_mul(bags.tables.len());
    let streams = Streams::new(&lanes, all, bags.lookups as usize, spec.multiprocessors);
    (lanes, streams)
}

/// Bytes of operands other than the tables: read, the part of these from device memory, and written.
fn others(bags: &FusedBags, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> [f64; 3] {
    let list = u16::from(bags.update.is_some());
    let mut sum = [0.0; 3];
    for (at, operand) in call.operands.iter().enumerate() {
        let bytes = operand.bytes as f64;
        match (operand.slot, operand.role) {
            (Slot::Scratch, _) => {}
            (Slot::Input(arg, _), _) if arg == list => {}
            (_, Role::Read) => {
                sum[0] += bytes;
                sum[1] += bytes * (1.0 - ctx.residency(at, spec));
            }
            _ => sum[2] += bytes,
        }
    }
    sum
}

fn model(bags: &FusedBags, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    match bags.update {
        None => forward::model(bags, call, ctx, spec),
        Some(optimizer) => backward::model(bags, optimizer, call, ctx, spec),
    }
}

/// Code of the optimizer, 0 for the forward pass. Part of the profiles' format: never renumbered.
fn update(optimizer: Option<RowOptimizer>) -> f32 {
    match optimizer {
        None => 0.0,
        Some(RowOptimizer::Sgd) => 1.0,
        Some(RowOptimizer::RowWiseAdagrad) => 2.0,
        Some(RowOptimizer::Adagrad) => 3.0,
        Some(RowOptimizer::Adam) => 4.0,
        Some(RowOptimizer::PartialRowWiseAdam) => 5.0,
        Some(RowOptimizer::Other) => 6.0,
    }
}

impl Family for Fused {
    fn name(&self) -> &'static str {
        "fused_embedding_bag"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::FusedBags(bags) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(bags, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let count = (bags.tables.len() as f64).max(1.0);
            let all_bags = bags.bags as f64 * count;
            let lookups = (bags.lookups as f64).max(1.0);
            let tables = || bags.tables.iter();
            let sort = bags.row_sort();
            let sorts = bags.update.is_some();
            let lanes = model.lanes.map_or([0; 6], |(of, each)| {
                [of.lanes, of.bytes, of.passes, of.ranges, each.together, each.in_flight]
            });
            let [held, bytes, passes, ranges, together, in_flight] = lanes.map(|number| number as f32);
            // Rows of a stream one after the other.
            let [.., streams, flights] = lanes.map(|number| number as f64);
            let turns = lookups / all_bags.max(1.0) * streams / flights.max(1.0);
        }
        "update" => update(bags.update),
        "pooling" => pooling(bags.pooling),
        "weighted" => flag(bags.weighted),
        "element_bits" => bags.element_bits as f32,
        "index_bytes" => bags.index_bytes as f32,
        "ln_tables" => ln(count),
        "ln_rows" => ln(tables().map(|table| table.rows as f64).sum()),
        "ln_most_rows" => ln(tables().map(|table| table.rows as f64).fold(0.0, f64::max)),
        "dim" => (bags.dims() as f64 / count) as f32,
        "least_dim" => tables().map(|table| table.dim).min().unwrap_or(0) as f32,
        "most_dim" => tables().map(|table| table.dim).max().unwrap_or(0) as f32,
        "align_row" => tables().map(|table| halvings(table.row_bytes, 9)).fold(9.0, f32::min),
        "kinds" => model.kinds as f32,
        "ln_bags" => ln(bags.bags as f64),
        "ln_all_bags" => ln(all_bags),
        "ln_lookups" => ln(lookups),
        "ln_length" => ln_ratio(lookups, all_bags.max(1.0)),
        "ln_bags_by_sm" => ln_ratio(all_bags, f64::from(spec.multiprocessors)),
        "ln_table_dram" => ln(model.table_dram),
        "distinct_share" => (model.distinct / lookups) as f32,
        "ln_distinct" => ln(model.distinct),
        "ln_longest" => ln(model.longest),
        "sort_passes" => if sorts { sort.passes as f32 } else { 0.0 },
        "sort_one_block" => flag(sorts && sort.one_block()),
        "sort_share" => (model.sort_us / model.total_us) as f32,
        "ln_move" => ln(model.move_us * 1e3),
        "ln_wait" => ln(model.wait_us * 1e3),
        "ln_work" => ln(model.work_us * 1e3),
        "ln_warps_by_sm" => ln_ratio(model.warps, f64::from(spec.multiprocessors)),
        "lanes" => held,
        "load_bytes" => bytes,
        "passes" => passes,
        "ranges" => ranges,
        "together" => together,
        "in_flight" => in_flight,
        "ln_turns" => ln(turns),
    }

    fn published(&self) -> PaperModel {
        PaperModel::Formula
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::FusedBags(bags) => model(bags, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        let Kernel::FusedBags(bags) = &call.kernel else {
            return None;
        };
        let batched = embedding::Batched::from_fused(bags);
        Some(match bags.update {
            None => embedding::forward(&batched, spec),
            Some(_) => embedding::backward(&batched, spec),
        })
    }
}
