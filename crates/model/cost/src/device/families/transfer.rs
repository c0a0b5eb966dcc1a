//! Copies between host and device.

use steptime_aten::kernel::{Transfer, TransferDirection};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper;
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::memory::Traffic;
use super::shared::{features, flag, halvings, ln, push_shared};

pub(super) struct Transfers;

/// Size of a pageable copy below which the driver sends the data with the command, without a separate buffer.
const INLINE: u64 = 65_536;

fn us(transfer: &Transfer, spec: &DeviceSpec) -> f64 {
    spec.transfer.floor_us + transfer.bytes as f64 / (spec.transfer.gb_s(transfer) * 1e3)
}

impl Family for Transfers {
    fn name(&self) -> &'static str {
        "transfer"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Transfer(transfer) = &call.kernel else {
                return super::blank(self, out);
            };
            push_shared(call, ctx, &Traffic::from_call(call, ctx, spec), us(transfer, spec), out);
        }
        "to_host" => flag(transfer.direction == TransferDirection::ToHost),
        "pinned" => flag(transfer.pinned),
        "ln_bytes" => ln(transfer.bytes as f64),
        "inline" => flag(transfer.bytes < INLINE),
        "align" => halvings(transfer.bytes, 6),
    }

    fn published(&self) -> PaperModel {
        PaperModel::Formula
    }

    fn analytic(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Transfer(transfer) => us(transfer, spec),
            _ => spec.launch.floor_us,
        }
    }

    fn paper(&self, call: &KernelCall, _ctx: &Context, spec: &DeviceSpec) -> Option<f64> {
        match &call.kernel {
            Kernel::Transfer(transfer) => Some(paper::transfer(transfer, spec)),
            _ => None,
        }
    }
}
