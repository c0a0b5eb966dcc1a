//! Demand of a rank's kernels on the GPU, beside collectives.

use steptime_cost::device::DeviceSpec;
use steptime_cost::{Demand, Demands, Multiprocessor};
use steptime_graph::{ActivityId, StepGraph, TiVec};
use steptime_trace::ActivityKind;

use super::launch::Launch;
use super::shape::{channels, usual};

/// Demands of priced kernels; `None` where the step has no collectives. A kernel without a known op has no demand,
/// and keeps its time.
pub(crate) fn beside_collectives(
    graph: &StepGraph,
    launches: &[Launch],
    spec: &DeviceSpec,
) -> Option<Demands> {
    if graph.collectives.is_empty() {
        return None;
    }
    let has = Multiprocessor::from_capability(spec.compute_capability);
    let mut of: TiVec<ActivityId, Option<Demand>> = vec![None; graph.activities.len()].into();
    for launch in launches {
        for &at in &launch.activities {
            let row = &graph.activities[at];
            if row.kind == ActivityKind::Kernel {
                let shape = row.launch.unwrap_or_else(|| usual(&launch.call, spec));
                of[at] = Some(Demand::from_launch(&shape, &has, 0.0));
            }
        }
    }
    for (at, row) in graph.activities.iter_enumerated() {
        if let Some(own) = row.collective {
            let shape = row.launch.unwrap_or_else(|| channels(graph.collectives[own].kind, spec));
            of[at] = Some(Demand::from_launch(&shape, &has, 0.0));
        }
    }
    Some(Demands { multiprocessors: spec.multiprocessors, nodes: false, of })
}
