//! Sorting, unique, top-k; and running sums, which move data once where sorts move it once per digit.

use steptime_aten::kernel;
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::memory::{DRAM_LATENCY_US, L2_LATENCY_US, Traffic, sector_waste, sm_rate};
use super::opcode::opcode;
use super::shared::{features, flag, ln, ln_ratio, push_shared};
use super::times::{instructions_us, overlap};

/// Sorts.
pub(super) struct Sorts;

/// Running sums.
pub(super) struct Sort;

/// Bits of a key per pass of a radix sort.
const DIGIT_BITS: f64 = 8.0;

/// Number of elements that one block sorts by itself.
const ONE_BLOCK: f64 = 2048.0;

/// Time of a radix sort of `count` keys with values, all in one row, µs: one block alone if it can hold them, else one
/// pass over the data per digit. The launch of the first kernel is not counted.
pub(super) fn radix_us(count: f64, key_bytes: f64, value_bytes: f64, spec: &DeviceSpec) -> f64 {
    let passes = (key_bytes.max(1.0) * 8.0 / DIGIT_BITS).ceil();
    if count <= ONE_BLOCK {
        // A few round trips through shared memory per digit.
        return passes;
    }
    let bytes = count * (key_bytes + value_bytes) * 2.0;
    let near = Traffic::new(bytes / 2.0, 0.0, bytes / 2.0, bytes, spec);
    let moved = overlap(near.move_us(spec, 1.0), instructions_us(count * 40.0, spec));
    passes * (spec.constants.sort.pass_us + moved) + 2.0 * spec.launch.floor_us
}

struct Model {
    traffic: Traffic,
    passes: f64,
    total_us: f64,
}

fn sort(kernel: &kernel::Sort, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let processors = f64::from(spec.multiprocessors);
    let (rows, length) = ((kernel.rows as f64).max(1.0), (kernel.length as f64).max(1.0));
    let launches = f64::from(call.launches.max(1)) * spec.launch.floor_us;
    let passes = (kernel.key_bytes.max(1) as f64 * 8.0 / DIGIT_BITS).ceil();
    let selects = matches!(kernel.op, "topk" | "kthvalue" | "median" | "mode");
    let sort = if kernel.op == "nonzero" || kernel.op == "bincount" || kernel.op == "searchsorted" {
        2.0 * traffic.move_us(spec, 1.0) + DRAM_LATENCY_US
    } else if selects || (rows > 1.0 && length <= ONE_BLOCK) {
        // One block per row.
        let turns = (rows / processors / 4.0).ceil();
        let row_bytes = length * (kernel.key_bytes + kernel.value_bytes) as f64;
        let steps = length.max(2.0).log2();
        let one = passes * 4.0 * L2_LATENCY_US + passes * row_bytes / sm_rate(spec);
        let work = instructions_us(rows * length * steps * steps * 4.0, spec);
        overlap(turns * one, work)
    } else {
        radix_us(
            rows * length,
            kernel.key_bytes as f64 + f64::from(u8::from(rows > 1.0)),
            kernel.value_bytes as f64,
            spec,
        )
    };
    let total_us = launches + traffic.latency_us() + overlap(sort, traffic.move_us(spec, 1.0));
    Model { traffic, passes, total_us }
}

fn scan(kernel: &kernel::Sort, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let processors = f64::from(spec.multiprocessors);
    let (rows, length) = ((kernel.rows as f64).max(1.0), (kernel.length as f64).max(1.0));
    let element = call.dtype.size() as f64;
    let launches = f64::from(call.launches.max(1)) * spec.launch.floor_us;
    let waste = if kernel.stride > 1 { sector_waste(kernel.stride as f64 * element) } else { 1.0 };
    let alone = if rows == 1.0 {
        // Blocks wait for the sum of those before them.
        DRAM_LATENCY_US + (length / 4096.0 / processors).ceil() * L2_LATENCY_US
    } else if kernel.stride > 1 {
        // One thread per column, one element after the other.
        length * spec.constants.sort.column_step_us * (rows / (processors * 2048.0)).max(1.0)
    } else {
        // A block goes through a few rows together, one round of barriers after the other.
        rows * spec.constants.sort.row_us / processors * (length / 1024.0).ceil().max(1.0)
    };
    let busy =
        overlap(overlap(alone, instructions_us(rows * length * 16.0, spec)), traffic.move_us(spec, waste));
    let total_us = launches + traffic.latency_us() + busy;
    Model { traffic, passes: 1.0, total_us }
}

// Both families have the same features.
features! {
    free NAMES, push(kernel: &kernel::Sort, model: &Model, call: &KernelCall, ctx: &Context, spec: &DeviceSpec; out) {
        push_shared(call, ctx, &model.traffic, model.total_us, out);
        let (rows, length) = (kernel.rows as f64, kernel.length as f64);
    }
    "op" => opcode(kernel.op),
    "ln_rows" => ln(rows),
    "ln_length" => ln(length),
    "ln_elements" => ln(rows * length),
    "key_bytes" => kernel.key_bytes as f32,
    "value_bytes" => kernel.value_bytes as f32,
    "ln_stride" => ln(kernel.stride as f64),
    "one_row" => flag(kernel.rows <= 1),
    "passes" => model.passes as f32,
    "ln_rows_by_sm" => ln_ratio(rows, f64::from(spec.multiprocessors)),
    "ln_length_by_block" => ln_ratio(length, ONE_BLOCK),
}

impl Family for Sorts {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn feature_names(&self) -> &'static [&'static str] {
        NAMES
    }

    fn features(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec, out: &mut Vec<f32>) {
        match &call.kernel {
            Kernel::Sort(kernel) => push(kernel, &sort(kernel, call, ctx, spec), call, ctx, spec, out),
            _ => super::blank(self, out),
        }
    }

    fn published(&self) -> PaperModel {
        PaperModel::None
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Sort(kernel) => sort(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }
}

impl Family for Sort {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn feature_names(&self) -> &'static [&'static str] {
        NAMES
    }

    fn features(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec, out: &mut Vec<f32>) {
        match &call.kernel {
            Kernel::Scan(kernel) => push(kernel, &scan(kernel, call, ctx, spec), call, ctx, spec, out),
            _ => super::blank(self, out),
        }
    }

    fn published(&self) -> PaperModel {
        PaperModel::None
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Scan(kernel) => scan(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }
}
