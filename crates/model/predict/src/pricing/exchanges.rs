//! Collectives of a single rank, without the rest of its job.

use steptime_cost::network::{CollectiveCall, Topology};
use steptime_graph::{ActivityId, Collective, CollectiveKind, StepGraph, TiVec};
use steptime_trace::{Bytes, Nanos};

use crate::error::Error;

/// Prices the collectives of one rank without waiting for others, where the interconnect of GPUs of that name and the number of
/// moved bytes are known.
pub(crate) fn price_alone(graph: &StepGraph, device: &str, durations: &mut TiVec<ActivityId, Nanos>) {
    if graph.collectives.is_empty() {
        return;
    }
    let Ok(topology) = Topology::find(device) else { return };
    for (at, activity) in graph.activities.iter_enumerated() {
        if let Some(call) = activity.collective.and_then(|own| call(&graph.collectives[own])) {
            durations[at] = topology.in_step(&call).time;
        }
    }
}

/// Prices collectives that a rule inserted, without waiting for other ranks.
///
/// # Errors
/// Fails where there are any and the interconnect of GPUs of that name is unknown.
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
    let topology = Topology::find(device).map_err(|source| Error::Network { source })?;
    for (at, activity) in graph.activities.iter_enumerated() {
        if let Some(call) = new(activity).and_then(|own| call(&graph.collectives[own])) {
            durations[at] = topology.in_step(&call).time;
        }
    }
    Ok(())
}

/// Times of one rank's recorded collectives on GPUs of its kind once all ranks have arrived, as far as known; collectives of one
/// rank with itself are left out.
pub(crate) fn times_alone(
    graph: &StepGraph,
    measured: &TiVec<ActivityId, Nanos>,
) -> Vec<(ActivityId, Nanos)> {
    let device = graph.device.as_deref().unwrap_or_default();
    let Some(topology) = (!graph.collectives.is_empty()).then(|| Topology::find(device).ok()).flatten()
    else {
        return Vec::new();
    };
    let of = |(at, activity): (ActivityId, &steptime_graph::Activity)| {
        let own = &graph.collectives[activity.collective?];
        let time = topology.in_step(&call(own).filter(|call| call.ranks > 1)?).time;
        Some((at, time.min(measured[at])))
    };
    graph.activities.iter_enumerated().filter_map(of).collect()
}

/// A rank's part of a collective as a call to price; `None` where its bytes or number of ranks are unknown.
pub(crate) fn call(own: &Collective) -> Option<CollectiveCall> {
    let known = own.bytes() > Bytes(0) || own.kind == CollectiveKind::Barrier;
    let ranks = own.group.size.filter(|_| known)?;
    Some(CollectiveCall { kind: own.kind, ranks, bytes: own.bytes() })
}
