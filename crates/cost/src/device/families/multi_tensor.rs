//! One op over a list of tensors: foreach, fused optimizers.

use steptime_aten::kernel::MultiTensor;
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::elementwise::{instructions, work_code};
use super::memory::{Traffic, instructions_us, sm_rate};
use super::opcode::opcode;
use super::shared::{last_wave, ln, ln_ratio, names, overlap, push_shared};

/// The family.
pub(super) struct MultiTensors;

/// Elements of a chunk, which one block works on.
const CHUNK: f64 = 65_536.0;

/// Chunks and tensors of one launch: its arguments must fit in 4 KB.
const CHUNKS_A_LAUNCH: f64 = 320.0;

struct Model {
    traffic: Traffic,
    launches: f64,
    chunk_us: f64,
    total_us: f64,
}

fn model(kernel: &MultiTensor, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::of(call, ctx, spec);
    let processors = f64::from(spec.multiprocessors);
    let chunks = (kernel.chunks as f64).max(1.0);
    let launches = f64::from(call.launches.max(1)).max((chunks / CHUNKS_A_LAUNCH).ceil());
    // A block goes through its chunk alone; the longest one is a chunk, or the largest tensor.
    let numel = (kernel.numel as f64).max(1.0);
    let longest = (kernel.largest as f64).clamp(1.0, CHUNK);
    let bytes = traffic.l2() / numel;
    let work = instructions(kernel.work, call.dtype) + 6.0;
    let alone =
        overlap(2.0 * longest * bytes / sm_rate(spec), instructions_us(longest * work * processors, spec));
    let each = chunks / launches;
    let chunk_us = (each / processors).ceil() * alone;
    let moved = overlap(traffic.move_us(spec, 1.0), instructions_us(numel * work, spec)) / launches;
    let total_us = launches * (spec.launch.floor_us + traffic.latency_us() + overlap(chunk_us, moved));
    Model { traffic, launches, chunk_us, total_us }
}

impl Family for MultiTensors {
    fn name(&self) -> &'static str {
        "multi_tensor"
    }

    fn feature_names(&self) -> &'static [&'static str] {
        names![
            "op",
            "work",
            "ln_tensors",
            "lists",
            "ln_numel",
            "ln_largest",
            "ln_chunks",
            "ln_chunks_by_sm",
            "last_wave",
            "ln_launches",
            "chunk_share",
            "ln_numel_a_tensor",
            "ln_bytes_an_element",
        ]
    }

    fn features(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec, out: &mut Vec<f32>) {
        let Kernel::MultiTensor(kernel) = &call.kernel else {
            return super::blank(self, out);
        };
        let model = model(kernel, call, ctx, spec);
        push_shared(call, ctx, &model.traffic, model.total_us, out);
        let processors = f64::from(spec.multiprocessors);
        let chunks = (kernel.chunks as f64).max(1.0);
        out.extend_from_slice(&[
            opcode(kernel.op),
            work_code(kernel.work),
            ln(kernel.tensors as f64),
            kernel.lists as f32,
            ln(kernel.numel as f64),
            ln(kernel.largest as f64),
            ln(chunks),
            ln_ratio(chunks, processors),
            last_wave(chunks, processors) as f32,
            ln(model.launches),
            (model.chunk_us * model.launches / model.total_us) as f32,
            ln_ratio(kernel.numel as f64, (kernel.tensors as f64).max(1.0)),
            ln_ratio(model.traffic.l2(), (kernel.numel as f64).max(1.0)),
        ]);
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::MultiTensor(kernel) => model(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
