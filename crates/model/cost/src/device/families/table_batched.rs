//! Pooled lookups in many tables by one kernel (FBGEMM), the backward fused with the optimizer.

use steptime_aten::kernel::{Pass, RowOptimizer, TableBatched};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::PaperModel;
use crate::device::paper::embedding;
use crate::device::spec::DeviceSpec;

use super::embedding_bag::pooling;
use super::lookups::{TableTraffic, in_rows, table_operand, table_traffic};
use super::memory::{DRAM_LATENCY_US, L2_LATENCY_US, SECTOR};
use super::shared::{features, flag, halvings, ln, ln_ratio, push_shared};
use super::sort::radix_us;
use super::times::overlap;

pub(super) struct BatchedTables;

/// Warps per multiprocessor.
const WARPS: f64 = 64.0;

struct Model {
    table: TableTraffic,
    chain_us: f64,
    sort_us: f64,
    total_us: f64,
}

/// Bytes of optimizer state read and written for each updated row.
fn state_bytes(optimizer: RowOptimizer, row: f64) -> f64 {
    match optimizer {
        RowOptimizer::Sgd => 0.0,
        RowOptimizer::RowWiseAdagrad => SECTOR,
        RowOptimizer::Adagrad | RowOptimizer::Other => row,
        RowOptimizer::Adam => 2.0 * row,
        RowOptimizer::PartialRowWiseAdam => row + SECTOR,
    }
}

fn model(tables: &TableBatched, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let processors = f64::from(spec.multiprocessors);
    let count = (tables.tables as f64).max(1.0);
    let dim = tables.dims as f64 / count;
    let row = dim * call.dtype.size() as f64;
    let bags = (tables.batch as f64 * count).max(1.0);
    let length = tables.lookups as f64 / bags;
    let backward = tables.pass == Pass::Backward;
    let written = if backward { 2.0 * row } else { row / length.max(1.0) };
    // One table of all rows represents them all: each has its share of rows and of lookups.
    let lookups = in_rows(tables.rows, tables.lookups, row, written);
    let table = table_traffic(call, ctx, spec, table_operand(call, backward), &lookups);
    let missing = table.table_dram / (tables.lookups as f64 * row).max(1.0);
    let trip = L2_LATENCY_US + DRAM_LATENCY_US * missing.min(1.0);
    // Four rows in flight per warp.
    let chain_us = (2.0 + length / 4.0) * trip;
    let latency = (bags / (WARPS * 0.5 * processors)).max(1.0) * chain_us;
    let launches = f64::from(call.launches.max(1)) * spec.launch.floor_us;
    if !backward {
        let busy = overlap(latency, table.traffic.move_us(spec, 1.0));
        let total_us = launches + table.traffic.latency_us() + busy;
        return Model { table, chain_us, sort_us: 0.0, total_us };
    }
    // Sorted by row: each lookup brings its bag's gradient, each distinct row is read, changed and written.
    let sort_us =
        radix_us(tables.lookups as f64, ((tables.rows.max(2) as f64).log2() / 8.0).ceil(), 8.0, spec);
    let gradients = tables.lookups as f64 * row;
    let whole = bags * row;
    let held = (spec.l2.effective_bytes as f64 / whole.max(1.0)).min(1.0);
    let gradients_dram = whole + (gradients - whole).max(0.0) * (1.0 - held);
    let updated = table.distinct * (2.0 * (row + state_bytes(tables.optimizer, row)));
    let moved = overlap(spec.dram_us(gradients_dram + updated), spec.l2_us(gradients + updated));
    let busy = overlap(moved * 1.5, latency);
    let total_us = launches + table.traffic.latency_us() + sort_us + busy;
    Model { table, chain_us, sort_us, total_us }
}

/// Code of the optimizer. Part of the profiles' format: never renumbered.
fn optimizer(optimizer: RowOptimizer) -> f32 {
    match optimizer {
        RowOptimizer::Sgd => 0.0,
        RowOptimizer::RowWiseAdagrad => 1.0,
        RowOptimizer::Adagrad => 2.0,
        RowOptimizer::Adam => 3.0,
        RowOptimizer::PartialRowWiseAdam => 4.0,
        RowOptimizer::Other => 5.0,
    }
}

impl Family for BatchedTables {
    fn name(&self) -> &'static str {
        "table_batched_embedding"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::TableBatched(tables) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(tables, call, ctx, spec);
            push_shared(call, ctx, &model.table.traffic, model.total_us, out);
            let count = tables.tables.max(1);
            let bags = tables.batch as f64 * count as f64;
            let lookups = (tables.lookups as f64).max(1.0);
        }
        "backward" => flag(tables.pass == Pass::Backward),
        "pooling" => pooling(tables.pooling),
        "weighted" => flag(tables.weighted),
        "optimizer" => optimizer(tables.optimizer),
        "ln_tables" => ln(tables.tables as f64),
        "ln_rows" => ln(tables.rows as f64),
        "dim" => (tables.dims as f64 / count as f64) as f32,
        "align_dim" => halvings(tables.dims / count, 6),
        "ln_batch" => ln(tables.batch as f64),
        "ln_bags" => ln(bags),
        "ln_lookups" => ln(lookups),
        "ln_length" => ln_ratio(lookups, bags.max(1.0)),
        "ln_chain" => ln(model.chain_us * 1e3),
        "sort_share" => (model.sort_us / model.total_us) as f32,
        "ln_table_dram" => ln(model.table.table_dram),
        "distinct_share" => (model.table.distinct / lookups) as f32,
        "ln_distinct" => ln(model.table.distinct),
        "largest" => ln(model.table.largest_share * lookups),
        "index_bytes" => tables.index_bytes as f32,
        "ln_bags_by_sm" => ln_ratio(bags, f64::from(spec.multiprocessors)),
    }

    fn published(&self) -> PaperModel {
        PaperModel::Formula
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::TableBatched(tables) => model(tables, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        let Kernel::TableBatched(tables) = &call.kernel else {
            return None;
        };
        let batched = embedding::Batched::from_tables(tables);
        Some(match tables.pass {
            Pass::Forward => embedding::forward(&batched, spec),
            Pass::Backward => embedding::backward(&batched, spec),
        })
    }
}
