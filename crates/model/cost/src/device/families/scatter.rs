//! Rows, or single elements, that are added or written by index.

use steptime_aten::kernel::{Scatter, ScatterKind};
use steptime_aten::{Kernel, KernelCall, Role};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::lookups::{
    TableTraffic, in_rows, local_traffic, order_and_padding, repeats, table_operand, table_traffic,
};
use super::memory::L2_LATENCY_US;
use super::shared::{features, halvings, ln, ln_ratio, push_shared};
use super::sort::radix_us;
use super::times::{instructions_us, overlap};

pub(super) struct Scatters;

/// Number of lookups up to which an embedding's gradient is added up without sorting.
const FEW: u64 = 3072;

/// Columns that a warp adds in parallel.
const WARP: f64 = 32.0;

struct Model {
    table: TableTraffic,
    atomic_us: f64,
    sort_us: f64,
    repeats: f64,
    elements: f64,
    total_us: f64,
}

fn model(kernel: &Scatter, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let processors = f64::from(spec.multiprocessors);
    let row = (kernel.row_bytes as f64).max(1.0);
    let element = (call.dtype.size() as f64).max(1.0);
    let at = table_operand(call, true);
    let lookups = in_rows(kernel.rows, kernel.lookups, row, 2.0 * row);
    let puts = matches!(kernel.kind, ScatterKind::IndexPut | ScatterKind::IndexPutAccumulate);
    let repeats = if puts { repeats(call, at, kernel.lookups, kernel.row_bytes) } else { 1.0 };
    let elements = kernel.lookups as f64 * repeats * row / element;
    let table = if repeats > 1.0 || row <= element && kernel.kind == ScatterKind::Scatter {
        local_traffic(call, ctx, spec, at, elements)
    } else {
        table_traffic(call, ctx, spec, at, &lookups)
    };
    let launches = f64::from(call.launches.max(1)) * spec.launch.floor_us;
    let moved = table.traffic.move_us(spec, 1.0);
    let key_bytes = ((kernel.rows.max(2) as f64).log2() / 8.0).ceil();
    let hottest = (table.largest_share * kernel.lookups as f64).max(1.0);
    let constants = &spec.constants.scatter;
    let (mut sort_us, mut atomic_us) = (0.0, 0.0);
    let busy = match kernel.kind {
        ScatterKind::EmbeddingDense if kernel.lookups <= FEW => {
            overlap(kernel.lookups as f64 * constants.few_us, moved)
        }
        ScatterKind::EmbeddingDense => {
            sort_us = radix_us(kernel.lookups as f64, key_bytes, 8.0, spec) + constants.segments_us;
            overlap(moved * 1.5, instructions_us(elements * 10.0, spec)) + sort_us
        }
        ScatterKind::IndexPutAccumulate => {
            sort_us = radix_us(kernel.lookups as f64, 8.0, 8.0, spec);
            // A warp adds all values of a row, one after the other; there are kernels for one column and for few.
            let columns = row / element;
            let (step, far) = match columns {
                _ if columns <= 1.0 => (constants.hot_single_us, 0.0),
                _ if columns <= WARP => (constants.hot_few_us, 0.25),
                _ => (constants.hot_step_us, 1.0),
            };
            let values = call.operands.iter().position(|operand| operand.role == Role::Read);
            let missed = values.map_or(1.0, |at| 1.0 - ctx.residency(at, spec));
            let alone = hottest * (step + far * missed * spec.constants.memory.dram_step_us);
            // Single elements with the same indices for each leading row are added up one by one.
            let many = elements * if repeats > 1.0 && row <= element { constants.repeated_us } else { 0.0 };
            overlap(overlap(moved, instructions_us(elements * 30.0, spec)), overlap(alone, many)) + sort_us
        }
        ScatterKind::IndexAdd | ScatterKind::Scatter => {
            let rate = constants.atomics_per_cycle * spec.clock_mhz * processors;
            atomic_us = overlap(elements / rate, hottest / constants.same_address_per_us);
            let each = if kernel.kind == ScatterKind::IndexAdd { 185.0 } else { 90.0 };
            overlap(overlap(moved, instructions_us(elements * each, spec)), atomic_us)
        }
        _ => overlap(moved, instructions_us(elements * 120.0, spec)),
    };
    let total_us = launches + table.traffic.latency_us() + L2_LATENCY_US + busy;
    Model { table, atomic_us, sort_us, repeats, elements, total_us }
}

impl Family for Scatters {
    fn name(&self) -> &'static str {
        "scatter"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Scatter(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &model.table.traffic, model.total_us, out);
            let lookups = (kernel.lookups as f64).max(1.0);
            let row = kernel.row_bytes as f64;
            let elements = model.elements;
        }
        "kind" => match kernel.kind {
            ScatterKind::IndexAdd => 0.0,
            ScatterKind::Scatter => 1.0,
            ScatterKind::IndexPut => 2.0,
            ScatterKind::IndexPutAccumulate => 3.0,
            ScatterKind::EmbeddingDense => 4.0,
            ScatterKind::Other => 5.0,
        },
        "ln_rows" => ln(kernel.rows as f64),
        "ln_lookups" => ln(lookups),
        "ln_row_bytes" => ln(row),
        "align_row" => halvings(kernel.row_bytes, 9),
        "index_bytes" => kernel.index_bytes as f32,
        "ln_elements" => ln(elements),
        "ln_elements_by_sm" => ln_ratio(elements, f64::from(spec.multiprocessors)),
        "atomic_share" => (model.atomic_us / model.total_us) as f32,
        "sort_share" => (model.sort_us / model.total_us) as f32,
        "ln_table_dram" => ln(model.table.table_dram),
        "distinct_share" => (model.table.distinct / lookups) as f32,
        "ln_distinct_bytes" => ln(model.table.distinct * row),
        "hottest" => ln(model.table.largest_share * lookups),
        "ln_repeats" => ln(model.repeats),
    }

    features! {
        own more_names, more(self, call, ctx, _spec, out) {
            let Kernel::Scatter(_) = &call.kernel else { return super::blank_more(self, out) };
            let [sorted, padding] = order_and_padding(ctx);
        }
        "sorted" => sorted,
        "padding_share" => padding,
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        let Kernel::Scatter(kernel) = &call.kernel else { return "" };
        let columns = kernel.row_bytes as f64 / (call.dtype.size() as f64).max(1.0);
        let again = || repeats(call, table_operand(call, true), kernel.lookups, kernel.row_bytes) > 1.0;
        match kernel.kind {
            ScatterKind::IndexPutAccumulate if again() => "repeated",
            ScatterKind::IndexPutAccumulate if columns <= 1.0 => "single",
            ScatterKind::IndexPutAccumulate if columns <= WARP => "few",
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Scatter(kernel) => model(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
