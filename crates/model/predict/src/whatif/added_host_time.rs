//! Host time added by rules: extra work of a script at an op.

use steptime_cost::HostCosts;
use steptime_step::ScheduledStep;
use steptime_trace::Nanos;

/// Host time of a small op with autograd on the host of the default profile: from the probes of 172 recordings (`op_autograd_us`),
/// scaled to that host by the times of a step on the CPU on either host (`step_cpu_us`).
const OP_AUTOGRAD: Nanos = Nanos(1_900);

/// Adds the extra host time; `pace` is the host's time relative to that of the default profile's host.
pub(super) fn add(step: &steptime_step::StepIr, scheduled: &ScheduledStep, pace: f64, costs: &mut HostCosts) {
    for (at, row) in scheduled.graph.ops.iter_enumerated() {
        let more = step.ops.get(scheduled.ops[at]).map_or(0.0, |op| op.script);
        if more > 0.0 {
            let more = Nanos((OP_AUTOGRAD.0 as f64 * more * pace).round() as i64);
            costs.gaps[row.end] += more;
        }
    }
}
