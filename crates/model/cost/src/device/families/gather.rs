//! Rows, or single elements, taken by index.

use steptime_aten::kernel::{Gather, GatherKind};
use steptime_aten::{Kernel, KernelCall};
use steptime_launch::cache::Order;

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::lookups::{
    TableTraffic, in_rows, local_traffic, moved_row, order_and_padding, repeats, table_operand, table_traffic,
};
use super::memory::{L2_LATENCY_US, sector_waste};
use super::shared::{features, flag, halvings, ln, ln_ratio, push_shared};
use super::times::{instructions_us, overlap};

pub(super) struct Gathers;

/// Blocks of one warp per multiprocessor.
const BLOCKS: f64 = 32.0;

/// Bytes of a row that one block of PyTorch's vector gather copies: 256 threads of 16 bytes. Blocks of the first
/// such slice of all rows start before those of the second.
const SLICE: f64 = 4096.0;

struct Model {
    table: TableTraffic,
    /// Whether whole rows are copied by vector loads.
    rows: bool,
    waves: f64,
    repeats: f64,
    elements: f64,
    total_us: f64,
}

fn model(kernel: &Gather, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let processors = f64::from(spec.multiprocessors);
    let row = (kernel.row_bytes as f64).max(1.0);
    let element = (call.dtype.size() as f64).max(1.0);
    let at = table_operand(call, false);
    let repeats = if kernel.kind == GatherKind::Index {
        repeats(call, at, kernel.lookups, kernel.row_bytes)
    } else {
        1.0
    };
    let rows = row > element
        && kernel.row_bytes.is_multiple_of(16)
        && matches!(kernel.kind, GatherKind::Gather | GatherKind::IndexSelect);
    let elements = kernel.lookups as f64 * repeats * row / element;
    let mut lookups = in_rows(kernel.rows, kernel.lookups, row, row);
    if rows && row > SLICE {
        lookups.order = Order::Columns { slice: SLICE, in_flight: 1.0 };
    }
    let local = repeats > 1.0 || row <= element && kernel.kind == GatherKind::Gather;
    let table = if local {
        local_traffic(call, ctx, spec, at, elements)
    } else {
        table_traffic(call, ctx, spec, at, &lookups)
    };
    // A block per row, or per slice of a row.
    let slices = (row / SLICE).ceil();
    let threads = (row / 16.0).clamp(32.0, 256.0);
    let held = (2048.0 / threads).min(BLOCKS);
    let waves = kernel.lookups as f64 * slices / (processors * held);
    let latency = if rows { waves * spec.constants.memory.block_life_us } else { 0.0 } + L2_LATENCY_US;
    let work = instructions_us(if rows { elements * 2.0 } else { elements * 30.0 }, spec);
    let waste = if rows || local { 1.0 } else { sector_waste(row).min(moved_row(row) / row).max(1.0) };
    let busy = overlap(overlap(latency, work), table.traffic.move_us(spec, waste));
    let total_us = spec.launch.floor_us + table.traffic.latency_us() + busy;
    Model { table, rows, waves, repeats, elements, total_us }
}

impl Family for Gathers {
    fn name(&self) -> &'static str {
        "gather"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Gather(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &model.table.traffic, model.total_us, out);
            let lookups = (kernel.lookups as f64).max(1.0);
            let row = kernel.row_bytes as f64;
        }
        "kind" => match kernel.kind {
            GatherKind::Gather => 0.0,
            GatherKind::IndexSelect => 1.0,
            GatherKind::Index => 2.0,
            GatherKind::Other => 3.0,
        },
        "ln_rows" => ln(kernel.rows as f64),
        "ln_lookups" => ln(lookups),
        "ln_row_bytes" => ln(row),
        "align_row" => halvings(kernel.row_bytes, 9),
        "ln_index_bytes" => ln(kernel.index_bytes as f64),
        "by_rows" => flag(model.rows),
        "ln_waves" => ln_ratio(model.waves, 1.0),
        "ln_table_dram" => ln(model.table.table_dram),
        "distinct_share" => (model.table.distinct / lookups) as f32,
        "ln_distinct_bytes" => ln(model.table.distinct * row),
        "largest" => ln(model.table.largest_share * lookups),
        "ln_elements_by_sm" => ln_ratio(model.elements, f64::from(spec.multiprocessors)),
        "ln_repeats" => ln(model.repeats),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        let Kernel::Gather(kernel) = &call.kernel else { return "" };
        let again = || repeats(call, table_operand(call, false), kernel.lookups, kernel.row_bytes) > 1.0;
        if kernel.kind == GatherKind::Index && again() { "repeated" } else { "" }
    }

    features! {
        own more_names, more(self, call, ctx, _spec, out) {
            let Kernel::Gather(_) = &call.kernel else { return super::blank_more(self, out) };
            let [sorted, padding] = order_and_padding(ctx);
        }
        "sorted" => sorted,
        "padding_share" => padding,
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Gather(kernel) => model(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
