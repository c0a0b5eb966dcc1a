//! Collectives of a rank whose job is not here.

use steptime_cost::network::{CollectiveCall, Topology};
use steptime_graph::{ActivityId, Collective, CollectiveKind, StepGraph, TiVec};
use steptime_trace::{Bytes, Nanos};

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

/// A rank's own part as a collective to be priced; `None` where it is not known what it moves.
fn call(own: &Collective) -> Option<CollectiveCall> {
    let known = own.bytes() > Bytes(0) || own.kind == CollectiveKind::Barrier;
    known.then(|| CollectiveCall { kind: own.kind, ranks: own.group.size.unwrap_or(1), bytes: own.bytes() })
}
