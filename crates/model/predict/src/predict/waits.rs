//! Waits of one rank of a job for others: as recorded, the profiler's cost taken off.

use steptime_cost::{HostCosts, PricedGraph, Process};
use steptime_graph::{ActivityId, TiVec};
use steptime_sim::Timeline;
use steptime_trace::Nanos;

use super::host_side;
use crate::pricing::times_alone;
use crate::shipped_host::own_constants;
use crate::step::Step;
use crate::time_sources::Host;

/// Scales the time of collectives beyond the movement of their data: other ranks were profiled too, and are assumed to save the same
/// share of their step without the profiler as this one.
pub(crate) fn unprofiled(
    recorded: &Step,
    process: Process,
    host: &Host<'_>,
    durations: &mut TiVec<ActivityId, Nanos>,
) {
    let graph = &recorded.graph;
    let moving = times_alone(graph, durations);
    if moving.is_empty() || matches!(host, Host::Profiled) {
        return;
    }
    let mut own = durations.clone();
    moving.iter().for_each(|&(at, time)| own[at] = time);
    let step = |host: HostCosts| {
        let priced = PricedGraph { graph, host, durations: own.clone(), demands: None };
        Timeline::simulate(&priced).period.0.max(1) as f64
    };
    let profiled = HostCosts::profiled(graph, &own_constants(process).1);
    let share = step(host_side(recorded, process, host).0) / step(profiled);
    for (at, time) in moving {
        let waited = (durations[at] - time).max(Nanos::ZERO);
        durations[at] = time + super::scale(waited, share);
    }
}
