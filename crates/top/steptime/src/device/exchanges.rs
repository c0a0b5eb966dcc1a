//! Collectives of a rank whose job is not here.

use steptime_cost::network::{CollectiveCall, Topology};
use steptime_graph::{ActivityId, Collective, CollectiveKind, StepGraph, TiVec};
use steptime_trace::{Bytes, Nanos};

use crate::error::Error;

/// Prices the collectives of one rank as if no other kept it waiting, where it is known how GPUs of that name are joined and what is
/// moved.
pub(crate) fn price_alone(graph: &StepGraph, device: &str, durations: &mut TiVec<ActivityId, Nanos>) {
    if graph.collectives.is_empty() {
        return;
    }
    let Ok(topology) = Topology::of(device) else { return };
    for (at, activity) in graph.activities.iter_enumerated() {
        if let Some(call) = activity.collective.and_then(|own| call(&graph.collectives[own])) {
            durations[at] = topology.in_step(&call).time;
        }
    }
}

/// Prices collectives that a rule put in, as if no other rank kept this one waiting.
///
/// # Errors
/// Where there are any, and it is not known how GPUs of that name are joined.
pub(crate) fn price_new(
    graph: &StepGraph,
    device: &str,
    durations: &mut TiVec<ActivityId, Nanos>,
) -> Result<(), Error> {
    let new =
        |activity: &steptime_graph::Activity| activity.collective.filter(|_| activity.recorded.is_none());
    if graph.activities.iter().all(|activity| new(activity).is_none()) {
        return Ok(());
    }
    let topology = Topology::of(device).map_err(|source| Error::Network { source })?;
    for (at, activity) in graph.activities.iter_enumerated() {
        if let Some(call) = new(activity).and_then(|own| call(&graph.collectives[own])) {
            durations[at] = topology.in_step(&call).time;
        }
    }
    Ok(())
}

/// What the recorded collectives of one rank take among GPUs like its own once all are there, as far as that is known; nothing of those
/// with itself.
pub(crate) fn alone(graph: &StepGraph, measured: &TiVec<ActivityId, Nanos>) -> Vec<(ActivityId, Nanos)> {
    let device = graph.device.as_deref().unwrap_or_default();
    let Some(topology) = (!graph.collectives.is_empty()).then(|| Topology::of(device).ok()).flatten() else {
        return Vec::new();
    };
    let of = |(at, activity): (ActivityId, &steptime_graph::Activity)| {
        let own = &graph.collectives[activity.collective?];
        let time = topology.in_step(&call(own).filter(|call| call.ranks > 1)?).time;
        Some((at, time.min(measured[at])))
    };
    graph.activities.iter_enumerated().filter_map(of).collect()
}

/// A rank's own part as a collective to be priced; `None` where it is not known what it moves, or among how many ranks.
pub(crate) fn call(own: &Collective) -> Option<CollectiveCall> {
    let known = own.bytes() > Bytes(0) || own.kind == CollectiveKind::Barrier;
    let ranks = own.group.size.filter(|_| known)?;
    Some(CollectiveCall { kind: own.kind, ranks, bytes: own.bytes() })
}
