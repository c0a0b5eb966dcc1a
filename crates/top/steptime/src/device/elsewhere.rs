//! What a kernel's measured time says of the device that is asked for, where the kernel has no other price.

use steptime_aten::kernel_name::work;
use steptime_cost::device::scale::scaled;
use steptime_cost::device::{DeviceProfile, DeviceSpec, Estimate, Source};
use steptime_graph::{ActivityId, StepGraph, TiVec};
use steptime_trace::Nanos;

use super::catalog::{is_named, shipped_spec};
use super::launch::Launch;

/// Half-width of a kernel that was measured on this very GPU: medians of one recording and another.
const SAME: f64 = 0.02;
/// Half-width of a kernel that was measured on a GPU of which nothing is known.
const NO_PROFILE: f64 = 1.6;

/// Where device activities were measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured<'a> {
    graph: &'a StepGraph,
    /// For each activity that of the recording which it was; all are the recording's own where there is none.
    carried: Option<&'a TiVec<ActivityId, Option<ActivityId>>>,
}

impl<'a> Measured<'a> {
    /// Of a recording's own activities.
    pub fn of(graph: &'a StepGraph) -> Measured<'a> {
        Measured { graph, carried: None }
    }

    /// Of the activities of a changed step, some of which were recorded.
    pub fn carried(graph: &'a StepGraph, carried: &'a TiVec<ActivityId, Option<ActivityId>>) -> Measured<'a> {
        Measured { graph, carried: Some(carried) }
    }

    /// The median of an activity, and the name that it had.
    fn time(&self, activity: ActivityId) -> Option<(Nanos, &'a str)> {
        let row = self.carried.map_or(Some(activity), |carried| carried[activity])?;
        let time = self.graph.samples.median_duration(row)?;
        Some((time, self.graph.names.get(self.graph.activities[row].name)))
    }

    /// That of all activities of a launch.
    pub(super) fn of_launch(&self, launch: &Launch) -> Option<Nanos> {
        launch.activities.iter().map(|&activity| Some(self.time(activity)?.0)).sum()
    }
}

/// How measured times of a recording carry over to a device.
pub(super) struct Elsewhere<'a> {
    measured: Measured<'a>,
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
    pub(super) fn new(measured: Measured<'a>, profile: &'a DeviceProfile) -> Elsewhere<'a> {
        let to = &profile.spec;
        let from = match measured.graph.device.as_deref() {
            Some(name) if is_named(name, &to.name) => From::Same,
            Some(name) => shipped_spec(name).map_or(From::Unknown, |spec| From::Known(Box::new(spec))),
            None => From::Unknown,
        };
        Elsewhere { measured, to, from }
    }

    /// The time of a launch and of each of its activities; `None` where it was not measured.
    pub(super) fn stand_in(&self, launch: &Launch) -> Option<(Estimate, Vec<Nanos>)> {
        let mut first: Option<Estimate> = None;
        let mut each = Vec::with_capacity(launch.activities.len());
        for &activity in &launch.activities {
            let (measured, name) = self.measured.time(activity).filter(|(time, _)| time.0 > 0)?;
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
