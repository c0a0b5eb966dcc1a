//! Concatenation.

use steptime_aten::kernel::Concat;
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::memory::{Traffic, sector_waste};
use super::shared::{features, flag, halvings, ln, ln_ratio, push_shared};
use super::times::{instructions_us, overlap};

pub(super) struct Concats;

/// Tensors per launch.
const BATCH: f64 = 128.0;

struct Model {
    traffic: Traffic,
    work_us: f64,
    waste: f64,
    total_us: f64,
}

fn model(concat: &Concat, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let least = concat.least_bytes as f64;
    let waste = if concat.outer > 1 { sector_waste(least.min(2048.0)) } else { 1.0 };
    let element = (call.dtype.size() as f64).max(1.0);
    let elements = traffic.written / element;
    // The place of each vector, or of each element, is computed by divisions.
    let vector = if concat.aligned && concat.contiguous { 16.0 / element } else { 1.0 };
    let work_us = instructions_us(elements / vector.max(1.0) * 60.0 + elements * 2.0, spec);
    let batches = (concat.inputs as f64 / BATCH).ceil().max(1.0);
    let launches = f64::from(call.launches.max(1)).max(batches) * spec.launch.floor_us;
    let total_us = launches + traffic.latency_us() + overlap(work_us, traffic.move_us(spec, waste));
    Model { traffic, work_us, waste, total_us }
}

impl Family for Concats {
    fn name(&self) -> &'static str {
        "concat"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Concat(concat) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(concat, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let each = model.traffic.written / (concat.inputs as f64).max(1.0);
        }
        "inputs" => concat.inputs as f32,
        "ln_inputs" => ln(concat.inputs as f64),
        "ln_outer" => ln(concat.outer as f64),
        "ln_row" => ln(concat.row_bytes as f64),
        "ln_least" => ln(concat.least_bytes as f64),
        "ln_most" => ln(concat.most_bytes as f64),
        "ln_uneven" => ln_ratio(concat.most_bytes as f64, concat.least_bytes as f64),
        "contiguous" => flag(concat.contiguous),
        "aligned" => flag(concat.aligned),
        "align_row" => halvings(concat.row_bytes, 9),
        "waste" => model.waste as f32,
        "work_by_move" => ln_ratio(model.work_us, model.traffic.move_us(spec, 1.0)),
        "ln_bytes_an_input" => ln(each),
        "ln_input_bytes_by_sm" => ln_ratio(each, f64::from(spec.multiprocessors)),
    }

    fn published(&self) -> PaperModel {
        PaperModel::Formula
    }

    features! {
        own more_names, more(self, call, _ctx, _spec, out) {
            let Kernel::Concat(concat) = &call.kernel else { return super::blank_more(self, out) };
            let (inputs, mean) = (concat.inputs.max(1), concat.row_bytes as f64 / concat.inputs.max(1) as f64);
            // A launch takes a limited number of inputs, and its grid is sized for the widest.
        }
        "last_batch" => (inputs % BATCH as u64) as f32,
        "ln_mean_row" => ln(mean),
        "fill_of_widest" => ln_ratio(mean, concat.most_bytes as f64),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::Concat(concat) if !concat.contiguous => "strided",
            Kernel::Concat(concat) if concat.aligned => "aligned",
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Concat(concat) => model(concat, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::concat(call, spec))
    }
}
