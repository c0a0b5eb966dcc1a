//! A graph with a price on every part: the input of the simulator.

use steptime_graph::{ActivityId, StepGraph, TiVec};
use steptime_trace::Nanos;

use crate::demand::Demands;
use crate::host::price::HostCosts;

/// An execution graph, the time of each of its host gaps and of each of its device activities.
#[derive(Debug, Clone)]
pub struct PricedGraph<'g> {
    pub graph: &'g StepGraph,
    pub host: HostCosts,
    /// The duration of each device activity.
    pub durations: TiVec<ActivityId, Nanos>,
    /// Demands of kernels on the GPU, if those of several streams share it; `None` if each takes its own time, whatever else
    /// runs.
    pub demands: Option<Demands>,
}

impl<'g> PricedGraph<'g> {
    /// Takes kernel times from the recording: the median of each activity's samples.
    pub fn measured(graph: &'g StepGraph, host: HostCosts) -> PricedGraph<'g> {
        PricedGraph { graph, host, durations: PricedGraph::measured_durations(graph), demands: None }
    }

    /// Returns the median of each activity's samples; zero without any.
    pub fn measured_durations(graph: &StepGraph) -> TiVec<ActivityId, Nanos> {
        let activities = graph.activities.keys();
        activities.map(|a| graph.samples.median_duration(a).unwrap_or(Nanos::ZERO)).collect()
    }
}
