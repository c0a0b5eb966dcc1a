//! Peak device memory of a step.

use steptime_cost::device::DeviceSpec;
use steptime_graph::ApiKind;
use steptime_step::{Peak, ScheduledStep};
use steptime_trace::Bytes;

use crate::pricing::catalog::shipped_spec;
use crate::step::Step;
use crate::time_sources::Kernels;
use crate::uncertainty::uncertainty;

/// Peak of a recorded step; `None` where arguments of ops are unknown, or a CUDA graph hides ops.
pub(crate) fn peak_of_recorded(recorded: &Step, kernels: &Kernels<'_>) -> Option<Peak> {
    if !is_seen(recorded) {
        return None;
    }
    let step = recorded.arguments.editable(&recorded.graph);
    let scheduled = steptime_step::schedule(&step, &step, &recorded.graph, &recorded.ops);
    peak_of_changed(recorded, spec(recorded, kernels).as_ref(), &step, &scheduled)
}

/// Peak of a step that rules changed. `scheduled` is the step before any of it is captured; `spec` is the GPU's.
pub(crate) fn peak_of_changed(
    recorded: &Step,
    spec: Option<&DeviceSpec>,
    step: &steptime_step::StepIr,
    scheduled: &ScheduledStep,
) -> Option<Peak> {
    let capability = spec.map(|spec| u32::from(spec.compute_capability[0]));
    is_seen(recorded).then(|| Peak::find(step, scheduled, capability))
}

/// Memory of a recorded step over time; empty where unknown. `step` has its ops and tensors.
pub(crate) fn over_recorded(
    recorded: &Step,
    spec: Option<&DeviceSpec>,
    step: &steptime_step::StepIr,
) -> Vec<steptime_step::Moment> {
    if !is_seen(recorded) {
        return Vec::new();
    }
    let scheduled = steptime_step::schedule(step, step, &recorded.graph, &recorded.ops);
    steptime_step::memory_over(step, &scheduled, spec.map(|spec| u32::from(spec.compute_capability[0])))
}

/// Whether tensors can be distinguished: there is an execution trace, and no CUDA graph runs ops that the trace does not show.
fn is_seen(recorded: &Step) -> bool {
    let replays = recorded.graph.calls.iter().any(|call| call.kind == ApiKind::GraphLaunch);
    recorded.arguments.tells_tensors_apart() && !replays
}

/// Whether a step with this peak fits a GPU, with room for the memory of its process beside tensors: the CUDA context,
/// libraries, and memory that the allocator cannot use. `None` where either is unknown.
pub(crate) fn fits(peak: Option<&Peak>, spec: Option<&DeviceSpec>) -> Option<bool> {
    let room = room(spec?)?;
    Some(peak?.total() <= room)
}

/// Memory of a GPU that tensors may use, in bytes; `None` where its size is unknown.
pub(crate) fn room(spec: &DeviceSpec) -> Option<u64> {
    (spec.memory.bytes > 0).then(|| usable(Bytes(spec.memory.bytes)).0)
}

/// Part of a GPU's memory that a job may use.
#[must_use]
pub fn usable(memory: Bytes) -> Bytes {
    Bytes((memory.0 as f64 * (1.0 - uncertainty().memory.reserved)) as u64)
}

/// The GPU predicted for, where its specification is known.
pub(crate) fn spec(recorded: &Step, kernels: &Kernels<'_>) -> Option<DeviceSpec> {
    match kernels {
        Kernels::Device { profile, .. } => Some(profile.spec.clone()),
        Kernels::Measured => recorded.graph.device.as_deref().and_then(shipped_spec),
    }
}
