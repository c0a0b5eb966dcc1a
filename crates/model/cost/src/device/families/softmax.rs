//! Softmax and log-softmax along rows.

use steptime_aten::kernel::{Pass, Softmax};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::spec::DeviceSpec;

use super::memory::{Traffic, sector_waste};
use super::rows::{Rows, WARP_ROW, rows_us};
use super::shared::{flag, ln, ln_ratio, names, push_shared};

/// The family.
pub(super) struct Softmaxes;

fn model(kernel: &Softmax, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> (Traffic, f64) {
    let traffic = Traffic::of(call, ctx, spec);
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

/// Threads of a block along and across the dimension of a softmax over a middle one, as torch chooses them.
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

impl Family for Softmaxes {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn feature_names(&self) -> &'static [&'static str] {
        names![
            "backward",
            "log",
            "ln_rows",
            "ln_length",
            "ln_stride",
            "ln_rows_by_sm",
            "row_in_warp",
            "ln_row_bytes"
        ]
    }

    fn features(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec, out: &mut Vec<f32>) {
        let Kernel::Softmax(kernel) = &call.kernel else {
            return super::blank(self, out);
        };
        let (traffic, total) = model(kernel, call, ctx, spec);
        push_shared(call, ctx, &traffic, total, out);
        out.extend_from_slice(&[
            flag(kernel.pass == Pass::Backward),
            flag(kernel.log),
            ln(kernel.rows as f64),
            ln(kernel.length as f64),
            ln(kernel.stride as f64),
            ln_ratio(kernel.rows as f64, f64::from(spec.multiprocessors)),
            flag(kernel.length as f64 <= WARP_ROW),
            ln(kernel.length as f64 * call.dtype.size() as f64),
        ]);
    }

    fn more_names(&self) -> &'static [&'static str] {
        &["ln_outer", "align_stride", "ln_blocks_by_sm", "ln_threads_along", "ln_serial"]
    }

    fn more(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec, out: &mut Vec<f32>) {
        let Kernel::Softmax(softmax) = &call.kernel else { return out.extend([f32::NAN; 5]) };
        let stride = softmax.stride.max(1);
        let outer = softmax.rows / stride;
        // Over a middle dimension, a block takes neighbours of one sample.
        let (along, across) = threads(softmax);
        let blocks = (outer as f64) * (stride as f64 / across).ceil();
        let turns =
            (blocks / (f64::from(spec.multiprocessors) * (2048.0 / (along * across)).max(1.0))).max(1.0);
        let align = stride.trailing_zeros().min(6) as f32;
        out.extend_from_slice(&[
            ln(outer as f64),
            align,
            ln_ratio(blocks, f64::from(spec.multiprocessors)),
            ln(along),
            ln((softmax.length as f64 / along).ceil() * turns),
        ]);
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::Softmax(softmax) if softmax.stride > 1 => "middle",
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Softmax(kernel) => model(kernel, call, ctx, spec).1,
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        Some(paper::roofline(call, spec))
    }
}
