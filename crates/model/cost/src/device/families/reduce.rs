//! Reductions along dimensions, such as sums.

use steptime_aten::kernel::{Reduce, Work};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::elementwise::{instructions, work_code};
use super::memory::{L2_LATENCY_US, Traffic, sector_waste};
use super::opcode::opcode;
use super::shared::{features, flag, ln, ln_ratio, push_shared};
use super::times::{instructions_us, overlap};

pub(super) struct Reductions;

/// Threads per block.
const THREADS: f64 = 512.0;

/// Outputs that a thread makes at once if the reduction is along columns, and inputs it loads at once along rows.
const VECTOR: f64 = 4.0;

/// Number of elements per thread from which a sum is cut among blocks.
const CUT: f64 = 256.0;

/// Number of elements per thread that such a cut leaves.
const LEAST: f64 = 16.0;

/// Launch configuration of PyTorch's reduction kernel: its rules, in its order.
struct Launch {
    /// Blocks that share one output.
    shares: f64,
    /// Number of blocks.
    blocks: f64,
    /// Steps of a thread's loop.
    steps: f64,
    /// Steps of the last block's loop over the partial results.
    last_steps: f64,
}

fn power_below(size: f64) -> f64 {
    size.max(1.0).log2().floor().exp2()
}

fn launch(kernel: &Reduce, spec: &DeviceSpec) -> Launch {
    let reduced = (kernel.reduced as f64).max(1.0);
    let rows = kernel.inner <= 1;
    let vector =
        if rows && reduced >= 128.0 || !rows && kernel.inner.is_multiple_of(4) { VECTOR } else { 1.0 };
    laid_out(kernel, reduced, vector, spec)
}

/// Configuration if the elements of a sum are not contiguous: threads are along a run of them, and load them one by one.
fn launch_apart(kernel: &Reduce, spec: &DeviceSpec) -> Launch {
    laid_out(kernel, (kernel.run as f64).max(1.0), 1.0, spec)
}

/// Configuration with `along_a_row` elements along which the threads of a row may be.
fn laid_out(kernel: &Reduce, along_a_row: f64, vector: f64, spec: &DeviceSpec) -> Launch {
    let outputs = (kernel.outer as f64 * kernel.inner as f64).max(1.0);
    let reduced = (kernel.reduced as f64).max(1.0);
    let rows = kernel.inner <= 1;
    let threads = if rows { THREADS } else { THREADS / vector };
    let (near, far) = if rows { (along_a_row, outputs) } else { ((outputs / vector).ceil(), reduced) };
    let height = power_below(far).min(threads / power_below(near).min(32.0)).max(1.0);
    let width = power_below(near).min(threads / height).max(1.0);
    let mut a_thread = if rows { reduced / width } else { reduced };
    let mut a_block = if rows { 1.0 } else { width * vector };
    let mut along = 1.0;
    if a_thread >= height * LEAST || a_thread >= CUT {
        a_thread /= height;
        along = height;
    } else {
        a_block *= height;
    }
    let grid = (outputs / a_block).ceil();
    let room = f64::from(spec.multiprocessors) * (2048.0 / (width * height)).max(1.0);
    let mut shares = 1.0;
    if a_thread >= CUT && grid <= room {
        shares = (room / grid).min(a_thread / LEAST).max(a_thread / CUT).floor().max(1.0);
    }
    let loads = if rows { vector.max(1.0) } else { VECTOR };
    Launch {
        shares,
        blocks: grid * shares,
        steps: (a_thread / shares / loads).ceil(),
        last_steps: if shares > 1.0 {
            (shares / if rows { width * along } else { along }).ceil()
        } else {
            0.0
        },
    }
}

struct Model {
    traffic: Traffic,
    launch: Launch,
    chain_us: f64,
    total_us: f64,
}

fn model(kernel: &Reduce, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let element = call.dtype.size() as f64;
    let launch = launch(kernel, spec);
    let elements = kernel.outer as f64 * kernel.inner as f64 * kernel.reduced as f64;
    let waste = if kernel.inner > 1 { sector_waste(kernel.inner as f64 * element) } else { 1.0 };
    let work = instructions_us(elements * instructions(kernel.work, call.dtype), spec);
    let slow = if kernel.work == Work::Light { 1.0 } else { 1.5 };
    let resident = f64::from(spec.multiprocessors) * 4.0;
    let chain_us = launch.steps * traffic.step_us(spec) * slow * (launch.blocks / resident).max(1.0);
    let busy = overlap(overlap(work, chain_us), traffic.move_us(spec, waste));
    let among =
        if launch.shares > 1.0 { 1.5 + launch.last_steps * spec.constants.memory.step_us * 1.4 } else { 0.0 };
    let launches = spec.launch.floor_us * f64::from(call.launches.max(1));
    let total_us = launches + traffic.latency_us() + busy + 3.0 * L2_LATENCY_US + among;
    Model { traffic, launch, chain_us, total_us }
}

impl Family for Reductions {
    fn name(&self) -> &'static str {
        "reduce"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Reduce(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let (outer, reduced, inner) = (kernel.outer as f64, kernel.reduced as f64, kernel.inner as f64);
        }
        "op" => opcode(kernel.op),
        "work" => work_code(kernel.work),
        "ln_outer" => ln(outer),
        "ln_reduced" => ln(reduced),
        "ln_inner" => ln(inner),
        "ln_outputs" => ln(outer * inner),
        "inner_is_one" => flag(kernel.inner <= 1),
        "contiguous" => flag(kernel.contiguous),
        "ln_shares" => ln(model.launch.shares),
        "ln_blocks_by_sm" => ln_ratio(model.launch.blocks, f64::from(spec.multiprocessors)),
        "ln_reduced_by_outputs" => ln_ratio(reduced, outer * inner),
        "ln_elements_by_sm" => ln_ratio(outer * reduced * inner, f64::from(spec.multiprocessors)),
        "ln_steps" => ln(model.launch.steps),
        "ln_last_steps" => ln(model.launch.last_steps),
        "ln_chain" => ln(model.chain_us * 1e3),
    }

    features! {
        own more_names, more(self, call, _ctx, spec, out) {
            let Kernel::Reduce(reduce) = &call.kernel else { return super::blank_more(self, out) };
            let apart = launch_apart(reduce, spec);
        }
        "ln_run" => ln(reduce.run as f64),
        "run_share" => ln_ratio(reduce.run as f64, reduce.reduced as f64),
        "ln_steps_apart" => ln(apart.steps),
        "ln_blocks_apart" => ln_ratio(apart.blocks, f64::from(spec.multiprocessors)),
        "ln_shares_apart" => ln(apart.shares),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::Reduce(reduce) if reduce.inner > 1 => "columns",
            Kernel::Reduce(reduce) if reduce.run < reduce.reduced => "apart",
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Reduce(kernel) => model(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
