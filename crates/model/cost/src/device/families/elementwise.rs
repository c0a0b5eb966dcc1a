//! Elementwise kernels.

use steptime_aten::kernel::{self, Layout, Work};
use steptime_aten::{Dtype, Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::{Family, SpecEstimate};
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::memory::{SECTOR, Traffic, sector_waste};
use super::opcode::opcode;
use super::shared::{features, flag, ln, ln_ratio, push_shared};
use super::times::{instructions_us, last_wave, overlap};

pub(super) struct Elementwise;

/// Instructions per element, with loads, stores and the loop.
pub(super) fn instructions(work: Work, dtype: Dtype) -> f64 {
    let plain = match work {
        Work::Light => 4.0,
        Work::Medium => 12.0,
        Work::Heavy => 45.0,
        Work::Random => 30.0,
    };
    match dtype {
        // 64-bit integers are computed in halves, their division by a subroutine.
        Dtype::I64 => plain * 2.0,
        Dtype::Complex64 | Dtype::Complex128 => plain * 3.0,
        _ => plain,
    }
}

/// Code of the work. Part of the profiles' format: never renumbered.
pub(super) fn work_code(work: Work) -> f32 {
    match work {
        Work::Light => 0.0,
        Work::Medium => 1.0,
        Work::Heavy => 2.0,
        Work::Random => 3.0,
    }
}

struct Model {
    traffic: Traffic,
    waste_in: f64,
    waste_out: f64,
    compute_us: f64,
    total_us: f64,
}

fn model(kernel: &kernel::Elementwise, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let element = call.dtype.size() as f64;
    let (extra, waste_in, waste_out) = match kernel.layout {
        Layout::Vectorized => (0.0, 1.0, 1.0),
        Layout::Dense => (4.0 + 2.0 * f64::from(kernel.inputs), 1.0, 1.0),
        Layout::Strided { dims, run_in, run_out, .. } => {
            // Offsets are computed by divisions, dimension by dimension, for each operand.
            let offsets = f64::from(dims.max(1)) * (6.0 + 2.0 * f64::from(kernel.inputs));
            let run = |elements: u64| sector_waste((elements as f64 * element).min(64.0 * SECTOR));
            (8.0 + offsets, run(run_in), run(run_out))
        }
    };
    let numel = kernel.numel as f64;
    let compute_us = instructions_us(numel * (instructions(kernel.work, call.dtype) + extra), spec);
    let moved = traffic.l2().max(1.0);
    let waste = (traffic.read * waste_in + traffic.written * waste_out) / moved;
    let busy = overlap(compute_us, traffic.move_us(spec, waste));
    let total_us = spec.launch.floor_us + traffic.latency_us() + busy;
    Model { traffic, waste_in, waste_out, compute_us, total_us }
}

impl Family for Elementwise {
    fn name(&self) -> &'static str {
        "elementwise"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Elementwise(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let (layout, dims, run_in, run_out, broadcast) = match kernel.layout {
                Layout::Vectorized => (0.0, 1, kernel.numel, kernel.numel, false),
                Layout::Dense => (1.0, 1, kernel.numel, kernel.numel, false),
                Layout::Strided { dims, run_in, run_out, broadcast, .. } => {
                    (2.0, dims, run_in, run_out, broadcast)
                }
            };
            let blocks = kernel.numel as f64 / 1024.0;
            let slots = 16.0 * f64::from(spec.multiprocessors);
        }
        "op" => opcode(kernel.op),
        "work" => work_code(kernel.work),
        "ln_numel" => ln(kernel.numel as f64),
        "inputs" => kernel.inputs as f32,
        "layout" => layout,
        "dims" => f32::from(dims),
        "ln_run_in" => ln(run_in as f64),
        "ln_run_out" => ln(run_out as f64),
        "broadcast" => flag(broadcast),
        "waste_in" => model.waste_in as f32,
        "waste_out" => model.waste_out as f32,
        "bytes_an_element" => (model.traffic.l2() / (kernel.numel as f64).max(1.0)) as f32,
        "compute_by_move" => ln_ratio(model.compute_us, model.traffic.move_us(spec, 1.0)),
        "ln_blocks_by_sm" => ln_ratio(blocks.ceil(), f64::from(spec.multiprocessors)),
        "last_wave" => last_wave(blocks.ceil(), slots) as f32,
    }

    features! {
        own more_names, more(self, call, _ctx, _spec, out) {
            let Kernel::Elementwise(kernel::Elementwise { layout: Layout::Strided { steps, .. }, .. }) = &call.kernel
            else {
                return super::blank_more(self, out);
            };
            let [sizes, strides] = [steps.sizes, steps.steps].map(|pair| pair.map(|value| value as f64));
            // If the next dimension is the contiguous one, sectors are read again row by row.
            let again = sizes[0] * SECTOR.max(call.dtype.size() as f64);
        }
        "ln_inner" => ln(sizes[0]),
        "ln_next" => ln(sizes[1]),
        "ln_step" => ln(strides[0]),
        "ln_next_step" => ln(strides[1]),
        "turned" => flag(steps.steps[0] > 1 && steps.steps[1] == 1),
        "ln_tile_bytes" => ln(again),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::Elementwise(kernel::Elementwise { layout: Layout::Vectorized, .. }) => "",
            Kernel::Elementwise(kernel::Elementwise { layout: Layout::Dense, .. }) => "dense",
            Kernel::Elementwise(kernel::Elementwise {
                layout: Layout::Strided { broadcast: true, .. },
                ..
            }) => "broadcast",
            _ => "strided",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Elementwise(kernel) => model(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn specified(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Option<SpecEstimate> {
        let Kernel::Elementwise(kernel) = &call.kernel else { return None };
        let floats = matches!(call.dtype, Dtype::F32 | Dtype::F16 | Dtype::Bf16);
        if !floats || matches!(kernel.layout, Layout::Strided { .. }) || kernel.work == Work::Random {
            return None;
        }
        // All of them are bound by memory, even those of many instructions.
        let traffic = Traffic::from_call(call, ctx, spec);
        let us = spec.launch.floor_us + traffic.latency_us() + traffic.move_us(spec, 1.0);
        Some(SpecEstimate::by_memory(us, call, spec))
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
