//! Batch norm.

use steptime_aten::kernel::{BatchNorm, Pass};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::memory::{DRAM_LATENCY_US, L2_LATENCY_US, Traffic};
use super::shared::{features, flag, halvings, ln, ln_ratio, push_shared};
use super::times::{instructions_us, last_wave, overlap};

pub(super) struct BatchNorms;

struct Model {
    traffic: Traffic,
    channel_bytes: f64,
    fed_us: f64,
    total_us: f64,
}

fn model(kernel: &BatchNorm, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let processors = f64::from(spec.multiprocessors);
    let channels = (kernel.channels as f64).max(1.0);
    let backward = kernel.pass == Pass::Backward;
    let channel_bytes = traffic.read / channels;
    let launches = spec.launch.floor_us * f64::from(call.launches.max(1));
    if !kernel.training {
        let elements = traffic.read / call.dtype.size() as f64;
        let busy = overlap(traffic.move_us(spec, 1.0), instructions_us(elements * 60.0, spec));
        let total_us = launches + traffic.latency_us() + L2_LATENCY_US + busy;
        return Model { traffic, channel_bytes, fed_us: 0.0, total_us };
    }
    // First the statistics of each channel, then all elements again, from the cache if they fit.
    let kept = (spec.l2.effective_bytes as f64 / traffic.read.max(1.0)).min(1.0);
    let again =
        Traffic::new(traffic.read, traffic.read * (1.0 - kept), 0.0, traffic.read, spec).move_us(spec, 1.0);
    // A channel's elements are not contiguous: one block goes through them, twice, at the rate of its few loads in flight.
    let rates = &spec.constants.batch_norm;
    let rate = if backward { rates.backward_rate } else { rates.forward_rate };
    let fed_us = if kernel.channels_last || kernel.spatial <= 1 {
        0.0
    } else {
        let turns = (channels / (2.0 * processors)).ceil();
        turns * (2.0 * traffic.read + traffic.written) / channels / rate
    };
    let moved = traffic.move_us(spec, 1.0) + again;
    let sums = 4.0 * DRAM_LATENCY_US * if backward { 1.5 } else { 1.0 };
    let total_us = launches + traffic.latency_us() + sums + overlap(fed_us, moved);
    Model { traffic, channel_bytes, fed_us, total_us }
}

impl Family for BatchNorms {
    fn name(&self) -> &'static str {
        "batch_norm"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::BatchNorm(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let processors = f64::from(spec.multiprocessors);
        }
        "backward" => flag(kernel.pass == Pass::Backward),
        "training" => flag(kernel.training),
        "channels_last" => flag(kernel.channels_last),
        "cudnn" => flag(kernel.cudnn),
        "ln_batch" => ln(kernel.batch as f64),
        "ln_channels" => ln(kernel.channels as f64),
        "ln_spatial" => ln(kernel.spatial as f64),
        "ln_a_channel" => ln(kernel.batch as f64 * kernel.spatial as f64),
        "ln_channel_bytes" => ln(model.channel_bytes),
        "ln_channels_by_sm" => ln_ratio(kernel.channels as f64, processors),
        "last_wave" => last_wave(kernel.channels as f64, processors) as f32,
        "align_spatial" => halvings(kernel.spatial, 4),
        "align_channels" => halvings(kernel.channels, 6),
        "ln_bytes_by_l2" => ln_ratio(model.traffic.l2(), spec.l2.effective_bytes as f64),
        "ln_fed" => ln(model.fed_us * 1e3),
    }

    fn published(&self) -> PaperModel {
        PaperModel::None
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::BatchNorm(norm) if norm.channels_last => "channels-last",
            Kernel::BatchNorm(norm) if norm.cudnn => "cudnn",
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::BatchNorm(kernel) => model(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }
}
