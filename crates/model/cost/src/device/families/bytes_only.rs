//! Kernels whose duration follows from their bytes alone: copies within the device, memory set to a byte, unknown ops.

use steptime_aten::KernelCall;

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::memory::Traffic;
use super::shared::{features, halvings, ln_ratio, push_shared};
use super::times::{instructions_us, overlap};

/// Copies within the device.
pub(super) const DEVICE_COPY: Plain = Plain("device_copy");

/// Memory set to a byte.
pub(super) const MEMSET: Plain = Plain("memset");

/// Unknown ops.
pub(super) const UNKNOWN: Plain = Plain("unknown");

/// A family of such kernels, by name.
pub(super) struct Plain(&'static str);

fn us(call: &KernelCall, traffic: &Traffic, spec: &DeviceSpec) -> f64 {
    let launches = f64::from(call.launches.max(1)) - 1.0;
    let arithmetic = instructions_us(call.flops as f64, spec);
    let moved = overlap(traffic.move_us(spec, 1.0), arithmetic);
    spec.launch.floor_us * (1.0 + launches) + traffic.latency_us() + moved
}

impl Family for Plain {
    fn name(&self) -> &'static str {
        self.0
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let traffic = Traffic::from_call(call, ctx, spec);
            push_shared(call, ctx, &traffic, us(call, &traffic, spec), out);
        }
        "align" => halvings(call.operands.first().map_or(0, |operand| operand.bytes), 9),
        "ln_bytes_by_l2" => ln_ratio(call.footprint() as f64, spec.l2.effective_bytes as f64),
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        us(call, &Traffic::from_call(call, ctx, spec), spec)
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
