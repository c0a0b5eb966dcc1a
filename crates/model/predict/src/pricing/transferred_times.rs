//! Measured kernel times transferred to the device of a query, for kernels without another price.

use steptime_aten::kernel_name::work;
use steptime_cost::device::scale_by_name::scaled;
use steptime_cost::device::{DeviceProfile, DeviceSpec, Estimate, Source};
use steptime_graph::{ActivityId, StepGraph, TiVec};
use steptime_trace::Nanos;

use super::catalog::{is_named, shipped_spec};
use super::launch::Launch;
use crate::uncertainty::uncertainty;

/// Measured times of device activities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredTimes<'a> {
    graph: &'a StepGraph,
    /// Recorded activity of each activity; `None` where all are the recording's own.
    carried: Option<&'a TiVec<ActivityId, Option<ActivityId>>>,
}

impl<'a> MeasuredTimes<'a> {
    /// Uses a recording's own activities.
    pub fn new(graph: &'a StepGraph) -> MeasuredTimes<'a> {
        MeasuredTimes { graph, carried: None }
    }

    /// Uses the activities of a changed step, some of which were recorded.
    pub fn carried(
        graph: &'a StepGraph,
        carried: &'a TiVec<ActivityId, Option<ActivityId>>,
    ) -> MeasuredTimes<'a> {
        MeasuredTimes { graph, carried: Some(carried) }
    }

    /// Median time of an activity, and its recorded name.
    fn time(&self, activity: ActivityId) -> Option<(Nanos, &'a str)> {
        let row = self.carried.map_or(Some(activity), |carried| carried[activity])?;
        let time = self.graph.samples.median_duration(row)?;
        Some((time, self.graph.names.get(self.graph.activities[row].name)))
    }

    /// Total median time of a launch's activities.
    pub(super) fn launch_time(&self, launch: &Launch) -> Option<Nanos> {
        launch.activities.iter().map(|&activity| Some(self.time(activity)?.0)).sum()
    }
}

/// Transfer of a recording's measured times to a device.
pub(super) struct TimeTransfer<'a> {
    measured: MeasuredTimes<'a>,
    to: &'a DeviceSpec,
    from: SourceGpu,
}

/// The GPU recorded on.
enum SourceGpu {
    /// The same as the GPU of the query.
    Same,
    /// Another, with a known specification.
    Known(Box<DeviceSpec>),
    /// Another, without a known specification.
    Unknown,
}

impl<'a> TimeTransfer<'a> {
    /// Compares the device of a recording with that of the query.
    pub(super) fn new(measured: MeasuredTimes<'a>, profile: &'a DeviceProfile) -> TimeTransfer<'a> {
        let to = &profile.spec;
        let from = match measured.graph.device.as_deref() {
            Some(name) if is_named(name, &to.name) => SourceGpu::Same,
            Some(name) => {
                shipped_spec(name).map_or(SourceGpu::Unknown, |spec| SourceGpu::Known(Box::new(spec)))
            }
            None => SourceGpu::Unknown,
        };
        TimeTransfer { measured, to, from }
    }

    /// Time of a launch and of each of its activities; `None` where it was not measured.
    pub(super) fn estimate(&self, launch: &Launch) -> Option<(Estimate, Vec<Nanos>)> {
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
            SourceGpu::Same => kept(uncertainty().kernels.same_gpu, Source::Measured),
            SourceGpu::Known(from) => scaled(measured, work(name), from, self.to),
            SourceGpu::Unknown => {
                Estimate { shared: uncertainty().unknown.work, ..kept(0.0, Source::Unknown) }
            }
        }
    }
}
