//! Least and greatest duration of a kernel on a GPU, from its duration on a measured one.
//!
//! Models transferred to a GPU extrapolate. Their results must keep the order of the specifications: a kernel gains at
//! most as much as the figure that gains most, and loses at most as much as the resources that it waits for.

use steptime_aten::kernel::Transfer;
use steptime_aten::{Kernel, KernelCall};
use steptime_trace::Nanos;

use super::context::Context;
use super::estimate::Estimate;
use super::families::memory::Traffic;
use super::spec::DeviceSpec;
use super::unit_limits;

/// Bounds of a call's duration, µs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    least: f64,
    most: f64,
    /// Distance of the GPU from the measured one.
    distance: f64,
}

impl Bounds {
    /// Bounds without any information.
    pub(super) const NONE: Bounds = Bounds { least: 0.0, most: f64::INFINITY, distance: f64::INFINITY };

    /// Bounds on `to` of a call that takes `us` µs on `from`.
    pub(super) fn new(
        call: &KernelCall,
        ctx: &Context,
        us: f64,
        from: &DeviceSpec,
        to: &DeviceSpec,
    ) -> Bounds {
        let slower = slower(call, from, to);
        let (least, most) =
            slower.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &by| (least.min(by), most.max(by)));
        let floors = if let Kernel::Transfer(_) = call.kernel {
            [from.transfer.floor_us, to.transfer.floor_us]
        } else {
            [from.launch.floor_us, to.launch.floor_us]
        };
        // A call may be shorter than the shortest kernel of a sweep.
        let start = us.min(floors[0]);
        let starts = [start, start / floors[0] * floors[1]];
        let busy = us - start;
        let by_figures = starts[1] + busy * most;
        let by_resources = if let Kernel::Transfer(_) = call.kernel {
            by_figures
        } else {
            let [there, here] = [from, to].map(|spec| resources(call, ctx, spec));
            let rest = (busy - there[0].max(there[1])).max(0.0);
            starts[1] + here[0] + here[1] + rest * waits(from, to).into_iter().fold(0.0, f64::max)
        };
        let least = starts[0].min(starts[1]) + busy * least;
        let distance = distance(call, from, to);
        Bounds { least, most: by_figures.min(by_resources).max(least), distance }
    }

    /// Intersection of both; if they contradict each other, the bounds from the nearer GPU.
    #[must_use]
    pub(super) fn and(self, other: Bounds) -> Bounds {
        let (near, far) = if self.distance <= other.distance { (self, other) } else { (other, self) };
        let within = |us: f64| us.clamp(near.least, near.most);
        Bounds { least: within(far.least), most: within(far.most), ..near }
    }

    /// Estimate moved into the bounds.
    #[must_use]
    pub(super) fn clamp(self, estimate: Estimate) -> Estimate {
        let us = estimate.time.as_micros();
        let within = us.max(self.least).min(self.most);
        if within == us { estimate } else { Estimate { time: Nanos::from_micros_f64(within), ..estimate } }
    }
}

/// Times of arithmetic and of device memory, each alone, µs.
fn resources(call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> [f64; 2] {
    let arithmetic = DeviceSpec::compute_us(call.flops as f64, unit_limits::tflop_s(call, spec));
    [arithmetic, spec.dram_us(Traffic::from_call(call, ctx, spec).dram())]
}

/// Ratios of times that neither arithmetic nor device memory explains: instructions, latencies, the cache.
fn waits(from: &DeviceSpec, to: &DeviceSpec) -> [f64; 3] {
    let cycles = |spec: &DeviceSpec| f64::from(spec.multiprocessors) * spec.clock_mhz;
    [cycles(from) / cycles(to), from.clock_mhz / to.clock_mhz, from.l2.rate_gb_s / to.l2.rate_gb_s]
}

/// Distance of two GPUs for a call: the logarithm of the ratio of the figure that differs most. A copy depends on the link, for any kind of
/// host memory.
fn distance(call: &KernelCall, from: &DeviceSpec, to: &DeviceSpec) -> f64 {
    let ratios = match &call.kernel {
        Kernel::Transfer(transfer) => {
            let linked = Transfer { pinned: true, ..*transfer };
            vec![from.transfer.gb_s(&linked) / to.transfer.gb_s(&linked)]
        }
        _ => slower(call, from, to),
    };
    ratios.iter().map(|ratio| ratio.ln().abs()).fold(0.0, f64::max)
}

/// Ratios of times on `to` and on `from` for each figure that a call may wait for. The host stages a copy of pageable memory at its own rate for any
/// GPU.
fn slower(call: &KernelCall, from: &DeviceSpec, to: &DeviceSpec) -> Vec<f64> {
    if let Kernel::Transfer(transfer) = &call.kernel {
        let there = to.transfer.in_host_of(&from.transfer);
        return vec![from.transfer.gb_s(transfer) / there.gb_s(transfer)];
    }
    let cache = from.l2.effective_bytes as f64 / to.l2.effective_bytes as f64;
    let memory = from.memory.rate_gb_s / to.memory.rate_gb_s;
    let mut all = vec![memory, cache];
    all.extend(waits(from, to));
    if call.flops > 0 {
        all.push(unit_limits::tflop_s(call, from) / unit_limits::tflop_s(call, to));
    }
    all
}

#[cfg(test)]
mod tests {
    use steptime_aten::kernel::TransferDirection;
    use steptime_aten::{Dtype, Operand, Role, Slot};

    use super::*;
    use crate::device::families::fixture::h200;

    fn copy(bytes: u64) -> KernelCall {
        let operand = |role, slot| Operand { slot, role, bytes };
        let operands = [operand(Role::Read, Slot::Input(0, 0)), operand(Role::Write, Slot::Output(0, 0))];
        KernelCall {
            kernel: Kernel::DeviceCopy,
            dtype: Dtype::F32,
            operands: operands.into_iter().collect(),
            flops: 0,
            launches: 1,
        }
    }

    #[test]
    fn the_same_gpu_takes_the_same() {
        let (call, spec) = (copy(1 << 28), h200());
        let bounds = Bounds::new(&call, &Context::cold(&call), 130.0, &spec, &spec);
        assert!((bounds.least - 130.0).abs() < 1e-9 && (bounds.most - 130.0).abs() < 1e-9, "{bounds:?}");
    }

    #[test]
    fn a_gpu_of_slower_memory_alone_loses_no_more_than_that() {
        let (call, spec) = (copy(1 << 28), h200());
        let mut slow = spec.clone();
        slow.memory.rate_gb_s /= 2.0;
        let bounds = Bounds::new(&call, &Context::cold(&call), 130.0, &spec, &slow);
        assert!((130.0 - 1e-9..131.0).contains(&bounds.least), "{bounds:?}");
        assert!((250.0..261.0).contains(&bounds.most), "{bounds:?}");
        let small = copy(1 << 12);
        let bounds = Bounds::new(&small, &Context::cold(&small), 3.0, &spec, &slow);
        assert!(bounds.most < 3.1, "what is no work of the memory's does not take longer: {bounds:?}");
    }

    #[test]
    fn where_two_gpus_contradict_the_nearer_prevails() {
        let (call, spec) = (copy(1 << 28), h200());
        let (mut alike, mut worse) = (spec.clone(), spec.clone());
        worse.memory.rate_gb_s /= 2.0;
        alike.clock_mhz *= 1.01;
        let of = |us: f64, from: &DeviceSpec| Bounds::new(&call, &Context::cold(&call), us, from, &spec);
        let (near, far) = (of(100.0, &alike), of(500.0, &worse));
        for both in [near.and(far), far.and(near)] {
            assert!((100.0..102.0).contains(&both.least) && (100.0..102.0).contains(&both.most), "{both:?}");
        }
        let wide = of(150.0, &worse);
        assert_eq!(wide.and(near), near.and(wide));
    }

    #[test]
    fn a_copy_of_pageable_memory_is_as_slow_as_its_host() {
        let transfer = Transfer { direction: TransferDirection::ToDevice, pinned: false, bytes: 1 << 24 };
        let call = KernelCall { kernel: Kernel::Transfer(transfer), ..copy(1 << 24) };
        let (from, mut to) = (h200(), h200());
        to.transfer.to_device_pageable_gb_s /= 2.0;
        let bounds = Bounds::new(&call, &Context::cold(&call), 1500.0, &from, &to);
        assert!((bounds.least - 1500.0).abs() < 1e-6 && (bounds.most - 1500.0).abs() < 1e-6, "{bounds:?}");
        to.transfer.to_device_pinned_gb_s /= 2.0;
        let slower = Bounds::new(&call, &Context::cold(&call), 1500.0, &from, &to);
        assert!(slower.least > 1550.0 && slower.most < 3000.0, "{slower:?}");
    }

    #[test]
    fn what_is_worse_in_every_figure_is_never_faster() {
        let (call, spec) = (copy(1 << 24), h200());
        let mut worse = spec.clone();
        worse.clock_mhz *= 0.9;
        worse.multiprocessors -= 20;
        worse.memory.rate_gb_s *= 0.7;
        worse.l2.rate_gb_s *= 0.9;
        worse.l2.effective_bytes /= 2;
        for us in [0.5, 1.0, 5.0, 500.0] {
            assert!(Bounds::new(&call, &Context::cold(&call), us, &spec, &worse).least >= us - 1e-9, "{us}");
        }
    }
}
