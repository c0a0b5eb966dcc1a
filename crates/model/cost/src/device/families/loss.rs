//! Negative log likelihood.

use steptime_aten::kernel::{Loss, Pass};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::memory::{SECTOR, Traffic};
use super::shared::{features, flag, ln, push_shared};

pub(super) struct Losses;

fn model(loss: &Loss, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> (Traffic, f64) {
    let mut traffic = Traffic::from_call(call, ctx, spec);
    let rows = loss.rows as f64 * (loss.spatial as f64).max(1.0);
    if loss.pass == Pass::Forward {
        // One element of each row is read.
        let read = (rows * SECTOR).min(traffic.read);
        traffic = Traffic::new(read, read * (1.0 - traffic.resident), traffic.written, read, spec);
    }
    // With one position per row, one block goes through all of them, 16 rows or more per thread.
    let threads = (rows / 16.0).max(1.0).log2().round().exp2().clamp(32.0, 1024.0);
    let forward = if loss.pass == Pass::Forward { 2.0 } else { 1.2 };
    let alone =
        if loss.spatial <= 1 { (rows / threads).ceil() * traffic.step_us(spec) * forward } else { 0.0 };
    let launches = spec.launch.floor_us * f64::from(call.launches.max(1));
    let total = launches + traffic.latency_us() + alone + traffic.move_us(spec, 1.0);
    (traffic, total)
}

impl Family for Losses {
    fn name(&self) -> &'static str {
        "loss"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Loss(loss) = &call.kernel else {
                return super::blank(self, out);
            };
            let (traffic, total) = model(loss, call, ctx, spec);
            push_shared(call, ctx, &traffic, total, out);
        }
        "backward" => flag(loss.pass == Pass::Backward),
        "ln_rows" => ln(loss.rows as f64),
        "ln_classes" => ln(loss.classes as f64),
        "ln_spatial" => ln(loss.spatial as f64),
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Loss(loss) => model(loss, call, ctx, spec).1,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
