//! Softmax and log-softmax along rows.

use steptime_aten::kernel::{Pass, Softmax};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::{Family, SpecEstimate};
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::memory::{Traffic, sector_waste};
use super::repeated_reads;
use super::rows::{Rows, WARP_ROW, rows_us};
use super::shared::{features, flag, ln, ln_ratio, push_shared};

pub(super) struct Softmaxes;

fn model(kernel: &Softmax, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> (Traffic, f64) {
    let traffic = Traffic::from_call(call, ctx, spec);
    let length = kernel.length as f64;
    let backward = kernel.pass == Pass::Backward;
    let again = match (length <= WARP_ROW, backward) {
        (true, _) => 0.0,
        (false, true) => 1.0,
        (false, false) => 2.0,
    };
    let waste =
        if kernel.stride > 1 { sector_waste(kernel.stride as f64 * call.dtype.size() as f64) } else { 1.0 };
    let together = match (kernel.stride > 1, length <= WARP_ROW) {
        (true, _) => 128.0,
        (false, true) => 8.0,
        (false, false) => 1.0,
    };
    let work = Rows { rows: kernel.rows as f64, length, again, instructions: 24.0, together, waste };
    let total = rows_us(&work, call, &traffic, spec);
    (traffic, total)
}

/// Threads of a block along and across the dimension of a softmax over a middle one, by PyTorch's rules.
fn threads(kernel: &Softmax) -> (f64, f64) {
    let across = (kernel.stride as f64).clamp(1.0, 1024.0);
    let length = kernel.length as f64;
    let mut along = 1.0;
    if across <= 64.0 && length >= 64.0 {
        while across * along <= 1024.0 && along <= length {
            along *= 2.0;
        }
        along /= 2.0;
    }
    (along, across)
}

/// Whether rows are long and vector loads do not read them whole.
fn is_odd(softmax: &Softmax, element: u64) -> bool {
    softmax.length > 1024 && !softmax.length.is_multiple_of(16 / element.clamp(1, 16))
}

impl Family for Softmaxes {
    fn name(&self) -> &'static str {
        "softmax"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Softmax(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let (traffic, total) = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &traffic, total, out);
        }
        "backward" => flag(kernel.pass == Pass::Backward),
        "log" => flag(kernel.log),
        "ln_rows" => ln(kernel.rows as f64),
        "ln_length" => ln(kernel.length as f64),
        "ln_stride" => ln(kernel.stride as f64),
        "ln_rows_by_sm" => ln_ratio(kernel.rows as f64, f64::from(spec.multiprocessors)),
        "row_in_warp" => flag(kernel.length as f64 <= WARP_ROW),
        "ln_row_bytes" => ln(kernel.length as f64 * call.dtype.size() as f64),
    }

    features! {
        own more_names, more(self, call, _ctx, spec, out) {
            let Kernel::Softmax(softmax) = &call.kernel else { return super::blank_more(self, out) };
            let stride = softmax.stride.max(1);
            let outer = softmax.rows / stride;
            // Over a middle dimension, a block takes neighbours of one sample.
            let (along, across) = threads(softmax);
            let blocks = (outer as f64) * (stride as f64 / across).ceil();
            let turns =
                (blocks / (f64::from(spec.multiprocessors) * (2048.0 / (along * across)).max(1.0))).max(1.0);
            let align = stride.trailing_zeros().min(6) as f32;
        }
        "ln_outer" => ln(outer as f64),
        "align_stride" => align,
        "ln_blocks_by_sm" => ln_ratio(blocks, f64::from(spec.multiprocessors)),
        "ln_threads_along" => ln(along),
        "ln_serial" => ln((softmax.length as f64 / along).ceil() * turns),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::Softmax(softmax) if softmax.stride > 1 => "middle",
            Kernel::Softmax(softmax) if softmax.again => "again",
            Kernel::Softmax(softmax) if is_odd(softmax, call.dtype.size()) => "odd",
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Softmax(kernel) => model(kernel, call, ctx, spec).1,
            _ => spec.launch.floor_us,
        }
    }

    fn specified(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Option<SpecEstimate> {
        let Kernel::Softmax(softmax) = &call.kernel else { return None };
        if softmax.pass == Pass::Backward || softmax.stride > 1 {
            return None;
        }
        let traffic = Traffic::from_call(call, ctx, spec);
        let us = if softmax.length as f64 <= WARP_ROW {
            spec.launch.floor_us + traffic.latency_us() + traffic.move_us(spec, 1.0)
        } else if softmax.again {
            repeated_reads::softmax_us(softmax, call.dtype, &traffic, spec)?
        } else {
            return None;
        };
        Some(SpecEstimate::by_memory(us, call, spec))
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
