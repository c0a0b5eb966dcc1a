//! Pooled lookups in one table: PyTorch's kernels.

use steptime_aten::kernel::{EmbeddingBag, Pass, Pooling};
use steptime_aten::{Kernel, KernelCall};
use steptime_launch::Indices;

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::PaperModel;
use crate::device::paper::embedding;
use crate::device::spec::DeviceSpec;

use super::lookups::{TableTraffic, in_rows, order_and_padding, table_operand, table_traffic};
use super::memory::{DRAM_LATENCY_US, L2_LATENCY_US, Traffic};
use super::shared::{features, flag, halvings, ln, ln_ratio, push_shared};
use super::sort::radix_us;
use super::times::{instructions_us, overlap};

pub(super) struct Bags;

/// Warps per multiprocessor.
const WARPS: f64 = 64.0;

/// Number of lookups up to which few kernels find the begin and end of each row's.
const FEW: u64 = 3072;

struct Model {
    table: TableTraffic,
    warps: f64,
    chain_us: f64,
    total_us: f64,
}

fn model(bag: &EmbeddingBag, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    match bag.pass {
        Pass::Forward => forward(bag, call, ctx, spec),
        Pass::Backward => backward(bag, call, ctx, spec),
    }
}

fn forward(bag: &EmbeddingBag, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let processors = f64::from(spec.multiprocessors);
    let element = call.dtype.size() as f64;
    let row = bag.dim as f64 * element;
    let length = bag.lookups as f64 / (bag.bags as f64).max(1.0);
    let written = row / length.max(1.0);
    let lookups = in_rows(bag.rows, bag.lookups, row, written);
    let table = table_traffic(call, ctx, spec, table_operand(call, false), &lookups);
    // A warp takes 32 columns of one bag and goes through its rows, one round trip after the other.
    let columns = (bag.dim as f64 / 32.0).ceil().max(1.0);
    let warps = bag.bags as f64 * columns;
    let missing = table.table_dram / (bag.lookups as f64 * row).max(1.0);
    // The index first, then its row; nothing else is in flight. Two more trips for the offsets.
    let trip = 2.0 * L2_LATENCY_US + DRAM_LATENCY_US * missing.min(1.0);
    let chain_us = (2.0 + length) * trip;
    let waves = warps / (WARPS * processors);
    let latency = waves.max(1.0) * chain_us;
    let work = warps * 32.0 * (30.0 + 12.0 * length);
    let busy = overlap(overlap(latency, table.traffic.move_us(spec, 1.0)), instructions_us(work, spec));
    let total_us = spec.launch.floor_us + table.traffic.latency_us() + busy;
    Model { table, warps, chain_us, total_us }
}

/// The dense gradient: indices are sorted, then each row's gradients are added up.
fn backward(bag: &EmbeddingBag, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let element = call.dtype.size() as f64;
    let row = bag.dim as f64 * element;
    let lookups = in_rows(bag.bags, bag.lookups, row, row);
    // Gradients are looked up by bag, one after the other; rows are written once each.
    let evenly = Context { indices: Indices::Uniform, ..ctx.clone() };
    let table = table_traffic(call, &evenly, spec, table_operand(call, false), &lookups);
    let sort = radix_us(bag.lookups as f64, ((bag.rows.max(2) as f64).log2() / 8.0).ceil(), 8.0, spec);
    let warps = bag.lookups as f64 * (bag.dim as f64 / 32.0).ceil().max(1.0);
    let launches = f64::from(call.launches.max(1));
    let busy = table.traffic.move_us(spec, 1.5);
    let segments = if bag.lookups > FEW { spec.constants.embedding_bag.segments_us } else { 0.0 };
    let total_us = launches * spec.launch.floor_us + table.traffic.latency_us() + sort + segments + busy;
    Model { table, warps, chain_us: sort, total_us }
}

impl Family for Bags {
    fn name(&self) -> &'static str {
        "embedding_bag"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::EmbeddingBag(bag) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(bag, call, ctx, spec);
            let traffic: &Traffic = &model.table.traffic;
            push_shared(call, ctx, traffic, model.total_us, out);
            let lookups = (bag.lookups as f64).max(1.0);
            let row = bag.dim as f64 * call.dtype.size() as f64;
        }
        "backward" => flag(bag.pass == Pass::Backward),
        "pooling" => pooling(bag.pooling),
        "weighted" => flag(bag.weighted),
        "ln_rows" => ln(bag.rows as f64),
        "dim" => bag.dim as f32,
        "ln_dim" => ln(bag.dim as f64),
        "align_dim" => halvings(bag.dim, 6),
        "ln_bags" => ln(bag.bags as f64),
        "ln_lookups" => ln(lookups),
        "ln_length" => ln_ratio(lookups, (bag.bags as f64).max(1.0)),
        "ln_warps_by_sm" => ln_ratio(model.warps, f64::from(spec.multiprocessors)),
        "ln_chain" => ln(model.chain_us * 1e3),
        "ln_table_dram" => ln(model.table.table_dram),
        "table_hit" => (1.0 - model.table.table_dram / (lookups * row).max(1.0)) as f32,
        "distinct_share" => (model.table.distinct / lookups) as f32,
        "ln_distinct_bytes" => ln(model.table.distinct * row),
        "largest_share" => ln_ratio(model.table.largest_share * lookups, 1.0),
        "index_bytes" => bag.index_bytes as f32,
        "latency_share" => (traffic.move_us(spec, 1.0) / model.total_us) as f32,
    }

    features! {
        own more_names, more(self, call, ctx, _spec, out) {
            let Kernel::EmbeddingBag(_) = &call.kernel else { return super::blank_more(self, out) };
            let [sorted, padding] = order_and_padding(ctx);
        }
        "sorted" => sorted,
        "padding_share" => padding,
    }

    fn published(&self) -> PaperModel {
        PaperModel::Formula
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::EmbeddingBag(bag) => model(bag, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        match &call.kernel {
            Kernel::EmbeddingBag(bag) if bag.pass == Pass::Forward => {
                Some(embedding::forward(&embedding::Batched::from_bag(bag), spec))
            }
            _ => None,
        }
    }
}

/// Code of the pooling. Part of the profiles' format: never renumbered.
pub(super) fn pooling(pooling: Pooling) -> f32 {
    match pooling {
        Pooling::Sum => 0.0,
        Pooling::Mean => 1.0,
        Pooling::Max => 2.0,
        Pooling::None => 3.0,
    }
}
