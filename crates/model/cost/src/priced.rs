//! A graph with a price on every part: what the simulator takes.

use steptime_graph::{ActivityId, StepGraph, TiVec};
use steptime_trace::Nanos;

use crate::demand::Demands;
use crate::host::price::HostCosts;

/// An execution graph, the time of each of its host gaps and of each of its device activities.
#[derive(Debug, Clone)]
pub struct PricedGraph<'g> {
    /// What runs.
    pub graph: &'g StepGraph,
    /// The host side.
    pub host: HostCosts,
    /// The duration of each device activity.
    pub durations: TiVec<ActivityId, Nanos>,
    /// What kernels ask of the GPU, where those of several streams share it; `None` where each takes its time, whatever runs
    /// beside it.
    pub demands: Option<Demands>,
}

impl<'g> PricedGraph<'g> {
    /// Takes kernel times from the recording: the median of each activity's samples.
    pub fn measured(graph: &'g StepGraph, host: HostCosts) -> PricedGraph<'g> {
        PricedGraph { graph, host, durations: PricedGraph::measured_durations(graph), demands: None }
    }

    /// The median of each activity's samples; zero where there are none.
    pub fn measured_durations(graph: &StepGraph) -> TiVec<ActivityId, Nanos> {
        let activities = graph.activities.keys();
        activities.map(|a| graph.samples.median_duration(a).unwrap_or(Nanos::ZERO)).collect()
    }
}
