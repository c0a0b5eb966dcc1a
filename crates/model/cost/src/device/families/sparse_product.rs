//! A sparse matrix times a dense one: rows of the dense one are looked up by column, and added up by row.

use steptime_aten::kernel::SparseProduct;
use steptime_aten::{Kernel, KernelCall};
use steptime_launch::Indices;

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::lookups::{TableTraffic, in_rows, table_operand, table_traffic};
use super::memory::L2_LATENCY_US;
use super::shared::{features, halvings, ln, ln_ratio, push_shared};
use super::times::{instructions_us, overlap};

pub(super) struct SparseProducts;

struct Model {
    table: TableTraffic,
    /// Entries of the longest row.
    longest: f64,
    total_us: f64,
}

fn model(product: &SparseProduct, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let row = product.columns as f64 * call.dtype.size() as f64;
    // The counted indices are the entries per row of the sparse matrix; its columns are taken as evenly accessed.
    let evenly = Context { indices: Indices::Uniform, ..ctx.clone() };
    let lookups = in_rows(product.inner, product.entries, row, row);
    let table = table_traffic(call, &evenly, spec, table_operand(call, false), &lookups);
    let crowded = steptime_launch::Popularity::new(product.rows as f64, &ctx.indices);
    let longest = (crowded.largest_share() * product.entries as f64).max(1.0);
    let work =
        instructions_us(product.entries as f64 * (product.columns as f64 / 32.0).ceil() * 32.0 * 6.0, spec);
    let launches = f64::from(call.launches.max(1)) * spec.launch.floor_us;
    let busy = overlap(table.traffic.move_us(spec, 1.0), work);
    let total_us = launches + table.traffic.latency_us() + L2_LATENCY_US + busy;
    Model { table, longest, total_us }
}

impl Family for SparseProducts {
    fn name(&self) -> &'static str {
        "sparse_product"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::SparseProduct(product) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(product, call, ctx, spec);
            push_shared(call, ctx, &model.table.traffic, model.total_us, out);
            let (rows, entries) = (product.rows as f64, product.entries as f64);
        }
        "ln_rows" => ln(rows),
        "ln_inner" => ln(product.inner as f64),
        "ln_columns" => ln(product.columns as f64),
        "align_columns" => halvings(product.columns, 6),
        "ln_entries" => ln(entries),
        "ln_degree" => ln_ratio(entries, rows),
        "ln_table_dram" => ln(model.table.table_dram),
        "longest" => ln(model.longest),
        "ln_longest_by_degree" => ln_ratio(model.longest * rows, entries),
        "ln_elements_by_sm" => ln_ratio(entries * product.columns as f64, f64::from(spec.multiprocessors)),
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::SparseProduct(product) => model(product, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
