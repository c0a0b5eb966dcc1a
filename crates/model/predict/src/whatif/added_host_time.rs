//! Host time added by rules: extra work of a script at an op.

use crate::uncertainty::uncertainty;
use steptime_cost::HostCosts;
use steptime_step::ScheduledStep;
use steptime_trace::Nanos;

/// Adds the extra host time; `pace` is the host's time relative to that of the default profile's host.
pub(super) fn add(step: &steptime_step::StepIr, scheduled: &ScheduledStep, pace: f64, costs: &mut HostCosts) {
    for (at, row) in scheduled.graph.ops.iter_enumerated() {
        let more = step.ops.get(scheduled.ops[at]).map_or(0.0, |op| op.script);
        if more > 0.0 {
            let more = Nanos((uncertainty().host.op_autograd_ns * more * pace).round() as i64);
            costs.gaps[row.end] += more;
        }
    }
}
