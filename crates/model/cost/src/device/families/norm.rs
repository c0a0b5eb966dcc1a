//! Layer, RMS and group norm.

use steptime_aten::kernel::{Norm, NormKind, Pass};
use steptime_aten::{Kernel, KernelCall, Slot};

use crate::device::context::Context;
use crate::device::family::{Family, SpecEstimate};
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::memory::{DRAM_LATENCY_US, L2_LATENCY_US, Traffic};
use super::repeated_reads;
use super::rows::{Rows, rows_us};
use super::shared::{features, flag, halvings, ln, ln_ratio, push_shared};
use super::times::overlap;

pub(super) struct Norms;

/// Number of rows above which, and length below which, a layer norm's gradient is summed in parts.
const MANY_ROWS: u64 = 64 << 10;
const NARROW: u64 = 32 * 66;

fn model(kernel: &Norm, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> (Traffic, f64) {
    let traffic = Traffic::from_call(call, ctx, spec);
    let backward = kernel.pass == Pass::Backward;
    let work = Rows {
        rows: kernel.rows as f64,
        length: kernel.length as f64,
        again: if backward { 2.0 } else { 1.0 },
        instructions: if backward { 24.0 } else { 14.0 },
        together: 1.0,
        waste: 1.0,
    };
    let mut total = rows_us(&work, call, &traffic, spec);
    // If vector loads do not fit, 512 threads go through a row one element at a time.
    if kernel.kind == NormKind::Group || !kernel.length.is_multiple_of(4) {
        let turns = (kernel.rows as f64 / (4.0 * f64::from(spec.multiprocessors))).max(1.0);
        total = overlap(total, turns * (kernel.length as f64 / 512.0).ceil() * traffic.step_us(spec))
            + spec.launch.floor_us
            + L2_LATENCY_US;
    }
    if backward && kernel.affine {
        // The weights' gradients are sums down the columns, by separate kernels that read everything again.
        let parallel = (kernel.length as f64 / 32.0 / f64::from(spec.multiprocessors)).clamp(0.05, 1.0);
        total += DRAM_LATENCY_US + 0.5 * traffic.move_us(spec, 1.0) / parallel.sqrt();
    }
    (traffic, total)
}

/// Number of channels of a group norm with weights, which is the number of weights; 1 for other norms.
fn channels(norm: &Norm, call: &KernelCall) -> f64 {
    let weight = Slot::Input(if norm.pass == Pass::Backward { 4 } else { 1 }, 0);
    let found = call.operands.iter().find(|operand| operand.slot == weight && norm.kind == NormKind::Group);
    found.map_or(1.0, |operand| operand.bytes as f64 / (call.dtype.size() as f64).max(1.0)).max(1.0)
}

impl Family for Norms {
    fn name(&self) -> &'static str {
        "norm"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Norm(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let (traffic, total) = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &traffic, total, out);
        }
        "backward" => flag(kernel.pass == Pass::Backward),
        "kind" => match kernel.kind {
            NormKind::Layer => 0.0,
            NormKind::Rms => 1.0,
            NormKind::Group => 2.0,
        },
        "affine" => flag(kernel.affine),
        "ln_rows" => ln(kernel.rows as f64),
        "ln_length" => ln(kernel.length as f64),
        "ln_rows_by_sm" => ln_ratio(kernel.rows as f64, f64::from(spec.multiprocessors)),
        "ln_length_by_rows" => ln_ratio(kernel.length as f64, kernel.rows as f64),
        "align" => halvings(kernel.length, 3),
    }

    fn specified(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Option<SpecEstimate> {
        let Kernel::Norm(norm) = &call.kernel else { return None };
        let vectors = norm.kind == NormKind::Layer && norm.length.is_multiple_of(4);
        let traffic = Traffic::from_call(call, ctx, spec);
        if norm.pass != Pass::Forward || !vectors {
            return None;
        }
        let us = repeated_reads::layer_norm_us(norm, call.dtype, &traffic, spec)?;
        Some(SpecEstimate::by_memory(us, call, spec))
    }

    fn published(&self) -> PaperModel {
        PaperModel::None
    }

    features! {
        own more_names, more(self, call, _ctx, _spec, out) {
            let Kernel::Norm(norm) = &call.kernel else { return super::blank_more(self, out) };
            let area = norm.length / norm.channels.max(1);
            let parts = norm.pass == Pass::Backward && norm.rows > MANY_ROWS && norm.length < NARROW;
        }
        "ln_channels" => ln(norm.channels as f64),
        "ln_area" => ln(area as f64),
        "ln_planes" => ln(norm.rows as f64 * norm.channels as f64),
        "align_area" => halvings(area, 4),
        "in_parts" => flag(parts),
        "ln_samples" => ln(norm.rows as f64 * norm.channels as f64 / channels(norm, call)),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::Norm(norm)
                if norm.pass == Pass::Backward && norm.rows > MANY_ROWS && norm.length < NARROW =>
            {
                "in parts"
            }
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Norm(kernel) => model(kernel, call, ctx, spec).1,
            _ => spec.launch.floor_us,
        }
    }
}
