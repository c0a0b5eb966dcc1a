//! Pooling and resampling.

use steptime_aten::kernel::{Pass, Pool, PoolKind};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::memory::{L2_LATENCY_US, Traffic};
use super::shared::{features, flag, ln, ln_ratio, push_shared};
use super::times::{mixed_us, overlap, waves_us};

pub(super) struct Pools;

fn area(sizes: [u64; 2]) -> f64 {
    (sizes[0] as f64 * sizes[1] as f64).max(1.0)
}

struct Model {
    traffic: Traffic,
    work_us: f64,
    total_us: f64,
}

fn model(pool: &Pool, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let backward = pool.pass == Pass::Backward;
    // Each thread makes one output: in the forward pass it goes through its window, in the backward pass through the windows it was in.
    let made = if backward { area(pool.input) } else { area(pool.output) } * pool.planes as f64;
    let seen = if backward { (area(pool.window) / area(pool.stride)).max(1.0) } else { area(pool.window) };
    let blended = pool.kind == PoolKind::Resample && area(pool.window) > 1.0;
    let an_output = match (pool.kind, backward) {
        (PoolKind::Resample, true) if blended => {
            spec.constants.pool.atomic_blend * area(pool.output) / area(pool.input)
        }
        (PoolKind::Resample, false) if blended => 60.0,
        (PoolKind::Resample, _) => 30.0,
        (PoolKind::Max, false) => 90.0 + 22.0 * seen,
        (PoolKind::Max, true) => 110.0 + 30.0 * seen,
        (PoolKind::Average, false) => 90.0 + 20.0 * seen,
        (PoolKind::Average, true) => 220.0 + 60.0 * seen,
        (PoolKind::Adaptive, false) => 60.0 + 12.0 * seen,
        (PoolKind::Adaptive, true) => 250.0,
    };
    // If adaptive, a block makes a plane; if blended, a thread makes one place of all planes, one after the other.
    let alone = match (pool.kind, backward) {
        (PoolKind::Adaptive, false) => {
            waves_us(pool.planes as f64, 8.0, 2.0 * spec.constants.memory.block_life_us, spec)
        }
        (PoolKind::Resample, false) if blended => pool.planes as f64 * (traffic.step_us(spec) - 0.1),
        _ => 0.0,
    };
    let work_us = overlap(mixed_us(made * an_output, spec), alone);
    let busy = overlap(work_us, traffic.move_us(spec, 1.0));
    let launches = spec.launch.floor_us * f64::from(call.launches.max(1));
    let total_us = launches + traffic.latency_us() + 3.0 * L2_LATENCY_US + busy;
    Model { traffic, work_us, total_us }
}

impl Family for Pools {
    fn name(&self) -> &'static str {
        "pool"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Pool(pool) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(pool, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let (planes, processors) = (pool.planes as f64, f64::from(spec.multiprocessors));
        }
        "backward" => flag(pool.pass == Pass::Backward),
        "kind" => match pool.kind {
            PoolKind::Max => 0.0,
            PoolKind::Average => 1.0,
            PoolKind::Adaptive => 2.0,
            PoolKind::Resample => 3.0,
        },
        "channels_last" => flag(pool.channels_last),
        "ln_planes" => ln(planes),
        "ln_input" => ln(area(pool.input)),
        "ln_output" => ln(area(pool.output)),
        "ln_window" => ln(area(pool.window)),
        "stride" => pool.stride[1] as f32,
        "overlapping" => ln_ratio(area(pool.window), area(pool.stride)),
        "ln_outputs_by_sm" => ln_ratio(planes * area(pool.output), processors),
        "ln_inputs_by_sm" => ln_ratio(planes * area(pool.input), processors),
        "work_by_move" => ln_ratio(model.work_us, model.traffic.move_us(spec, 1.0)),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::Pool(pool) if pool.channels_last => "channels-last",
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Pool(pool) => model(pool, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
