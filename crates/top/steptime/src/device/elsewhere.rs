//! What a kernel's measured time says of the device that is asked for, where the kernel has no other price.

use steptime_aten::kernel_name::work;
use steptime_cost::device::scale::scaled;
use steptime_cost::device::{DeviceProfile, DeviceSpec, Estimate, Source};
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::catalog::{is_named, shipped_spec};
use super::launch::Launch;

/// Half-width of a kernel that was measured on this very GPU: medians of one recording and another.
const SAME: f64 = 0.02;
/// Half-width of a kernel that was measured on a GPU of which nothing is known.
const NO_PROFILE: f64 = 1.6;

/// How measured times of a recording carry over to a device.
pub(super) struct Elsewhere<'a> {
    graph: &'a StepGraph,
    to: &'a DeviceSpec,
    from: From,
}

/// The GPU recorded on.
enum From {
    /// The one that is asked for.
    Same,
    /// Another whose specification is known.
    Known(Box<DeviceSpec>),
    /// Another of which nothing is known.
    Unknown,
}

impl<'a> Elsewhere<'a> {
    /// For a recording and the device asked for.
    pub(super) fn new(graph: &'a StepGraph, profile: &'a DeviceProfile) -> Elsewhere<'a> {
        let to = &profile.spec;
        let from = match graph.device.as_deref() {
            Some(name) if is_named(name, &to.name) => From::Same,
            Some(name) => shipped_spec(name).map_or(From::Unknown, |spec| From::Known(Box::new(spec))),
            None => From::Unknown,
        };
        Elsewhere { graph, to, from }
    }

    /// The time of a launch and of each of its activities; `None` where it was not measured.
    pub(super) fn stand_in(&self, launch: &Launch) -> Option<(Estimate, Vec<Nanos>)> {
        let mut first: Option<Estimate> = None;
        let mut each = Vec::with_capacity(launch.activities.len());
        for &activity in &launch.activities {
            let measured = self.graph.samples.median_duration(activity).filter(|time| time.0 > 0)?;
            let name = self.graph.names.get(self.graph.activities[activity].name);
            let estimate = self.one(measured, name);
            each.push(estimate.time);
            first.get_or_insert(estimate);
        }
        let first = first?;
        Some((Estimate { time: each.iter().copied().sum(), ..first }, each))
    }

    fn one(&self, measured: Nanos, name: &str) -> Estimate {
        let kept = |own, source| Estimate { time: measured, own, shared: 0.0, source, extrapolated: false };
        match &self.from {
            From::Same => kept(SAME, Source::Measured),
            From::Known(from) => scaled(measured, work(name), from, self.to),
            From::Unknown => Estimate { shared: NO_PROFILE, ..kept(0.0, Source::Unknown) },
        }
    }
}
