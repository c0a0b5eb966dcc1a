//! Kernels by name, for traces without arguments of ops: times, and the roofline of copies, whose bytes are recorded.

use std::collections::BTreeMap;

use steptime_cost::device::DeviceSpec;
use steptime_graph::names::CopyDirection;
use steptime_graph::{ActivityId, StepGraph};
use steptime_trace::{ActivityKind, Nanos};

use super::Query;
use super::roofline::recorded_on;
use crate::error::Error;
use crate::plausibility::check_time;
use crate::pricing::Bound;

/// The kernels, copies and fills of a step by name.
#[derive(Debug, Clone)]
pub struct NamedKernels {
    /// The GPU recorded on.
    pub device: Option<String>,
    /// Specification of the GPU; `None` where it has no profile.
    pub spec: Option<DeviceSpec>,
    /// Kernels by name, most expensive first.
    pub kernels: Vec<NamedKernel>,
}

/// All of a step's device activities of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedKernel {
    /// The name of the kernel, copy or fill.
    pub name: String,
    /// Kernel, copy or fill.
    pub kind: ActivityKind,
    /// Number of times that it runs in a step.
    pub count: usize,
    /// Total time.
    pub time: Nanos,
    /// Total bytes; 0 where not recorded, as for all kernels.
    pub bytes: u64,
    /// Shortest possible total time and its bound; `None` for kernels, and where the GPU has no profile.
    pub roof: Option<(Nanos, Bound)>,
}

impl Query<'_> {
    /// Groups device activities by name, with measured times: the roofline of a trace without arguments of ops.
    ///
    /// # Errors
    /// Fails where the input has no times of a GPU, where a GPU is given (which needs arguments), or where nothing takes time.
    pub fn kernels_by_name(&self) -> Result<NamedKernels, Error> {
        let step = self.step;
        if self.device.is_some() {
            return Err(Error::NoArguments { path: step.path.clone() });
        }
        let graph = &step.graph;
        if graph.samples.is_empty() {
            return Err(Error::NoTiming { path: step.path.clone() });
        }
        let named = step.meta.as_ref().and_then(|meta| meta.device.clone()).or_else(|| graph.device.clone());
        let spec = match &named {
            None => None,
            Some(_) => recorded_on(step).ok().map(|device| device.profile.spec.clone()),
        };
        let mut kernels: BTreeMap<(&str, u8), NamedKernel> = BTreeMap::new();
        for (id, activity) in graph.activities.iter_enumerated() {
            let Some(time) = graph.samples.median_duration(id).filter(|&time| time > Nanos::ZERO) else {
                continue;
            };
            let name = graph.names.get(activity.name);
            let roof = spec.as_ref().and_then(|spec| roof(graph, id, spec));
            let row = kernels.entry((name, activity.kind as u8)).or_insert_with(|| NamedKernel {
                name: name.to_owned(),
                kind: activity.kind,
                count: 0,
                time: Nanos::ZERO,
                bytes: 0,
                roof: roof.map(|(_, bound)| (Nanos::ZERO, bound)),
            });
            row.count += 1;
            row.time += time;
            row.bytes += activity.bytes.0;
            row.roof = row.roof.zip(roof).map(|((all, bound), (one, _))| (all + one, bound));
        }
        let mut kernels: Vec<NamedKernel> = kernels.into_values().collect();
        kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.time));
        if kernels.is_empty() {
            return Err(Error::NoKernels { path: step.path.clone(), repairs: step.repairs.clone() });
        }
        check_time(step, kernels.iter().map(|kernel| kernel.time).sum())?;
        Ok(NamedKernels { device: named, spec, kernels })
    }
}

/// Shortest possible time of a copy or fill: over the link to the host, or through device memory.
fn roof(graph: &StepGraph, id: ActivityId, spec: &DeviceSpec) -> Option<(Nanos, Bound)> {
    let activity = &graph.activities[id];
    let bytes = activity.bytes.0 as f64;
    let (us, bound) = match activity.kind {
        _ if activity.bytes.0 == 0 => return None,
        ActivityKind::Kernel => return None,
        ActivityKind::Memset => (spec.dram_us(bytes), Bound::Memory),
        ActivityKind::Memcpy => match graph.copy_name(id).direction {
            CopyDirection::HostToDevice => (bytes / (spec.transfer.to_device_pinned_gb_s * 1e3), Bound::Link),
            CopyDirection::DeviceToHost => (bytes / (spec.transfer.to_host_pinned_gb_s * 1e3), Bound::Link),
            // Every byte is read and written.
            CopyDirection::DeviceToDevice => (spec.dram_us(2.0 * bytes), Bound::Memory),
        },
    };
    let floor = spec.launch.floor_us;
    let (us, bound) = if us < floor { (floor, Bound::Launch) } else { (us, bound) };
    Some((Nanos::from_micros_f64(us), bound))
}
