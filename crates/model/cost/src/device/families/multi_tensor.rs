//! One op over a list of tensors: foreach, fused optimizers.

use steptime_aten::kernel::MultiTensor;
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::elementwise::{instructions, work_code};
use super::memory::{Traffic, sm_rate};
use super::opcode::opcode;
use super::shared::{features, ln, ln_ratio, push_shared};
use super::times::{instructions_us, last_wave, overlap};

pub(super) struct MultiTensors;

struct Model {
    traffic: Traffic,
    launches: f64,
    alone_us: f64,
    total_us: f64,
}

fn model(kernel: &MultiTensor, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let processors = f64::from(spec.multiprocessors);
    let launches = f64::from(call.launches.max(1));
    // A block goes through its chunk alone, and a launch waits for its longest.
    let numel = (kernel.numel as f64).max(1.0);
    let serial = (kernel.serial as f64).max(1.0);
    let bytes = traffic.l2() / numel;
    let work = instructions(kernel.work, call.dtype) + 6.0;
    let alone_us =
        overlap(2.0 * serial * bytes / sm_rate(spec), instructions_us(serial * work * processors, spec));
    let moved_us = overlap(traffic.move_us(spec, 1.0), instructions_us(numel * work, spec));
    let start_us = spec.launch.floor_us + traffic.latency_us();
    let total_us = launches * start_us + overlap(alone_us, moved_us);
    Model { traffic, launches, alone_us, total_us }
}

impl Family for MultiTensors {
    fn name(&self) -> &'static str {
        "multi_tensor"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::MultiTensor(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let processors = f64::from(spec.multiprocessors);
            let chunks = (kernel.chunks as f64).max(1.0);
        }
        "op" => opcode(kernel.op),
        "work" => work_code(kernel.work),
        "ln_tensors" => ln(kernel.tensors as f64),
        "lists" => kernel.lists as f32,
        "ln_numel" => ln(kernel.numel as f64),
        "ln_largest" => ln(kernel.largest as f64),
        "ln_chunks" => ln(chunks),
        "ln_chunks_by_sm" => ln_ratio(chunks, processors),
        "last_wave" => last_wave(chunks, processors) as f32,
        "ln_launches" => ln(model.launches),
        "chunk_share" => (model.alone_us / model.total_us) as f32,
        "ln_numel_a_tensor" => ln_ratio(kernel.numel as f64, (kernel.tensors as f64).max(1.0)),
        "ln_serial" => ln(kernel.serial as f64),
        "ln_serial_by_sm" => ln_ratio(kernel.serial as f64 * processors, kernel.numel as f64),
        "ln_bytes_an_element" => ln_ratio(model.traffic.l2(), (kernel.numel as f64).max(1.0)),
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
