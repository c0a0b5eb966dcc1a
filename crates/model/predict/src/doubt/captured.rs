//! Doubt: an execution trace of a step that replays a CUDA graph. Its ops ran when it was captured, and none in this step.

use steptime_graph::names::CopyDirection;
use steptime_graph::{Activity, ActivityId};
use steptime_trace::ActivityKind;

use super::Doubt;
use crate::step::Step;
use crate::uncertainty::uncertainty;

/// The doubt, where a step from an execution trace alone has no GPU work but copies from and to the host.
pub(super) fn doubt(recorded: &Step) -> Option<Doubt> {
    let graph = &recorded.graph;
    let copies = graph.activities.len();
    let of_batch = |(at, activity): (ActivityId, &Activity)| {
        activity.kind == ActivityKind::Memcpy
            && graph.copy_name(at).direction != CopyDirection::DeviceToDevice
    };
    if recorded.fingerprint.is_some() || copies == 0 || !graph.activities.iter_enumerated().all(of_batch) {
        return None;
    }
    let text = format!(
        "the GPU runs only {copies} {}: a step that replays a CUDA graph has no ops to record; record its kernels (Kineto), or record the \
         loop without the graph",
        if copies == 1 { "copy" } else { "copies" }
    );
    Some(Doubt {
        kind: "captured",
        text,
        below: 0.0,
        above: uncertainty().doubts.captured.above,
        no_estimate: true,
    })
}
