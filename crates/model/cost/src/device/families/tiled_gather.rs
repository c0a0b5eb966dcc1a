//! Gathers of whole rows by steptime's kernel: `gather.cu`. Rows are read whole, or a slice of columns of all lookups
//! before the next slice, so that a slice of the table stays in the cache; outputs are written past it.

use steptime_aten::kernel::TiledGather;
use steptime_aten::{Kernel, KernelCall};
use steptime_launch::cache::dram_reads;
use steptime_launch::gather_plan::{Launch, Problem};
use steptime_launch::{Lanes, Popularity, WARP};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::lookups::{moved_row, table_operand};
use super::memory::Traffic;
use super::shared::{features, halvings, ln, ln_ratio, push_shared};
use super::streams::{streams_us, written_through};
use super::times::overlap;

pub(super) struct TiledGathers;

/// Bytes of a load, and the assumed alignment of rows.
const LOAD: u64 = 16;

/// Bytes of a row that a warp holds with one load per lane.
const LANES_BYTES: u64 = WARP as u64 * LOAD;

/// Blocks of four warps per multiprocessor.
const BLOCKS: f64 = 12.0;

/// Bytes that a block has in flight.
const IN_FLIGHT: f64 = 8192.0;

/// Actual slice of the kernel for the requested one; 0 if rows are read whole.
fn slice(kernel: &TiledGather) -> u64 {
    if kernel.slice == 0 || kernel.row_bytes <= LANES_BYTES {
        return 0;
    }
    LANES_BYTES * Lanes::slice_passes(kernel.slice as usize, LOAD as usize) as u64
}

struct Model {
    traffic: Traffic,
    distinct: f64,
    table_dram: f64,
    largest: f64,
    waves: f64,
    total_us: f64,
}

fn model(kernel: &TiledGather, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let slice = slice(kernel);
    let popularity = Popularity::new(kernel.rows as f64, &ctx.indices);
    let lookups = kernel.lookups as f64;
    let row = moved_row(kernel.row_bytes as f64);
    let problem = Problem {
        rows: kernel.rows.max(1),
        row_bytes: row as u64,
        lookups: kernel.lookups,
        popularity: popularity.clone(),
    };
    let launch = if slice == 0 { Launch::Rows } else { Launch::LookupsFirst { slice: slice as f64 } };
    let whole = problem.table(launch, &spec.gpu());
    let missed = dram_reads(&whole, &popularity, spec.l2.effective_bytes as f64) / row;
    let at = table_operand(call, false);
    let table_dram = missed * row.max(spec.constants.streams.least_access) * (1.0 - ctx.residency(at, spec));
    let output = lookups * kernel.row_bytes as f64;
    // Each slice reads the indices again, which stay in the cache.
    let slices = if slice == 0 { 1.0 } else { (kernel.row_bytes as f64 / slice as f64).ceil() };
    let indices = lookups * kernel.index_bytes as f64;
    let missed_indices = indices * (1.0 - ctx.residency(at + 1, spec));
    let dram_read = table_dram + missed_indices;
    let read = lookups * row + indices * slices;
    let traffic = Traffic {
        read,
        written: output,
        dram_read,
        dram_written: written_through(output, dram_read + output, spec),
        resident: (1.0 - dram_read / read.max(1.0)).clamp(0.0, 1.0),
    };
    let waves = (output / IN_FLIGHT).max(1.0) / (BLOCKS * f64::from(spec.multiprocessors));
    let busy = overlap(streams_us(&traffic, spec), waves * spec.constants.memory.block_life_us);
    Model {
        distinct: popularity.distinct(lookups),
        table_dram,
        largest: popularity.largest_share() * lookups,
        waves,
        total_us: spec.launch.floor_us + 2.0 * traffic.latency_us() + busy,
        traffic,
    }
}

impl Family for TiledGathers {
    fn name(&self) -> &'static str {
        "tiled_gather"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::TiledGather(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let lookups = (kernel.lookups as f64).max(1.0);
            let (row, slice) = ((kernel.row_bytes as f64).max(1.0), slice(kernel) as f64);
        }
        "ln_rows" => ln(kernel.rows as f64),
        "ln_lookups" => ln(lookups),
        "ln_row_bytes" => ln(row),
        "align_row" => halvings(kernel.row_bytes, 9),
        "ln_slice" => ln(slice),
        "ln_slices" => if slice > 0.0 { ln(row / slice) } else { 0.0 },
        "index_bytes" => kernel.index_bytes as f32,
        "ln_waves" => ln_ratio(model.waves, 1.0),
        "ln_table_dram" => ln(model.table_dram),
        "hit_share" => (1.0 - model.table_dram / (lookups * row)) as f32,
        "distinct_share" => (model.distinct / lookups) as f32,
        "ln_distinct_bytes" => ln(model.distinct * row),
        "largest" => ln(model.largest),
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::TiledGather(kernel) => model(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::families::fixture::{call, near, shipped};

    /// Times of `benches/peers/results/h200.txt`: 8192 x 4096 f32, 16,384 uniform lookups, µs.
    #[test]
    fn orders_on_an_h200() {
        let spec = shipped("h200");
        for (slice, measured) in [(0, 123.8), (512, 104.5), (1024, 104.0), (2048, 105.5)] {
            let (rows, lookups, row_bytes) = (8192, 16_384, 16_384);
            let kernel = Kernel::TiledGather(TiledGather { rows, lookups, row_bytes, slice, index_bytes: 8 });
            let one = call(kernel, &[rows * row_bytes, 8 * lookups], &[lookups * row_bytes], 0);
            near(TiledGathers.analytic(&one, &Context::cold(&one), &spec), measured, 0.15);
        }
    }

    #[test]
    fn slices_are_those_of_the_kernel() {
        let of = |row_bytes, slice| {
            self::slice(&TiledGather { rows: 1, lookups: 1, row_bytes, slice, index_bytes: 8 })
        };
        assert_eq!(
            [of(16_384, 0), of(512, 512), of(1024, 128), of(16_384, 1600), of(16_384, 1 << 40)],
            [0, 0, 512, 2048, 2048]
        );
    }
}
