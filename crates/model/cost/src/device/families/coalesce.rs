//! Coalescing of sparse tensors: indices sorted by merging, then the rows of each added up.

use steptime_aten::kernel::Coalesce;
use steptime_aten::{Kernel, KernelCall};
use steptime_launch::Popularity;

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::memory::{L2_LATENCY_US, Traffic};
use super::shared::{features, halvings, ln, ln_ratio, push_shared};
use super::times::{instructions_us, overlap};

pub(super) struct Coalesced;

/// Indices that one block sorts before runs are merged.
const BLOCK: f64 = 2048.0;
/// Columns that a warp adds up together.
const COLUMNS: f64 = 128.0;

struct Model {
    traffic: Traffic,
    distinct: f64,
    /// Lookups of the most frequent row.
    hottest: f64,
    sort_us: f64,
    /// Time of the most frequent row, µs.
    alone_us: f64,
    total_us: f64,
}

fn model(kernel: &Coalesce, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let (lookups, row) = (kernel.lookups as f64, kernel.row_bytes as f64);
    let popularity = Popularity::new((kernel.rows as f64).max(1.0), &ctx.indices);
    let distinct = popularity.distinct(lookups);
    let hottest = (popularity.largest_share() * lookups).max(1.0);
    let (bytes, written) = (lookups * row, distinct * row);
    let missed = 1.0 - ctx.residency(0, spec);
    let traffic = Traffic::new(bytes, bytes * missed, written, bytes + written, spec);
    let constants = &spec.constants.scatter;

    let passes = (lookups / BLOCK).log2().ceil().max(0.0);
    let pairs = lookups * 32.0;
    let merge_us = constants.merge_us + Traffic::new(pairs, 0.0, 0.0, pairs, spec).move_us(spec, 1.0);
    let sort_us = constants.merge_block_us + passes * merge_us;
    // A warp adds all lookups of a row, one after the other; a row of few columns keeps one busy all the same.
    let alone_us = hottest * (constants.coalesce_step_us + missed * constants.coalesce_dram_step_us);
    let columns = row / (call.dtype.size() as f64).max(1.0);
    let warps = distinct * (columns / COLUMNS).ceil();
    let work = instructions_us(warps * 32.0 * 164.0 + lookups * columns * 8.0, spec);

    let launches = f64::from(call.launches.max(1)) * spec.launch.floor_us;
    let busy = overlap(overlap(traffic.move_us(spec, 1.0), work), alone_us);
    let total_us = launches + traffic.latency_us() + L2_LATENCY_US + sort_us + busy;
    Model { traffic, distinct, hottest, sort_us, alone_us, total_us }
}

impl Family for Coalesced {
    fn name(&self) -> &'static str {
        "coalesce"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Coalesce(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let (lookups, row) = (kernel.lookups as f64, kernel.row_bytes as f64);
        }
        "ln_rows" => ln(kernel.rows as f64),
        "ln_lookups" => ln(lookups),
        "ln_row_bytes" => ln(row),
        "align_row" => halvings(kernel.row_bytes, 9),
        "distinct_share" => (model.distinct / lookups.max(1.0)) as f32,
        "hottest" => ln(model.hottest),
        "sort_share" => (model.sort_us / model.total_us) as f32,
        "alone_share" => (model.alone_us / model.total_us) as f32,
        "ln_rows_by_sm" => ln_ratio(model.distinct, f64::from(spec.multiprocessors)),
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Coalesce(kernel) => model(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
