//! Host work of an optimizer for each parameter, beside its ops: scaled to the changed number of parameters.

use crate::uncertainty::uncertainty;
use steptime_cost::HostCosts;
use steptime_graph::names::EventName;
use steptime_graph::{OpId, StepGraph};
use steptime_step::{ScheduledStep, StepIr};
use steptime_trace::Nanos;

/// Scales the recorded times of optimizers to the current number of parameters.
pub(super) fn scale(recorded: &StepGraph, step: &StepIr, scheduled: &ScheduledStep, costs: &mut HostCosts) {
    // Ops of a further batch accumulate into the same gradients.
    let again = |op: OpId| step.ops[scheduled.ops[op]].again.is_some();
    let [was, now] = [parameters(recorded, |_| false), parameters(&scheduled.graph, again)];
    if was == 0 || now == 0 || was == now {
        return;
    }
    let graph = &scheduled.graph;
    let mut each = 0.0;
    for (op, row) in graph.ops.iter_enumerated().filter(|(op, _)| optimizer(graph, *op)) {
        let gap = if EventName::parse(graph.op_name(op)).is_optimizer_step() {
            let less =
                Nanos::from_micros_f64(each * uncertainty().host.zero_grad_share * (was as f64 - now as f64));
            let first = row.begin.next();
            (first, (costs.gaps[first] - less).max(Nanos::ZERO))
        } else if row.begin.next() == row.end {
            // Only Python runs inside: `zero_grad` clears one gradient after the other.
            each = costs.gaps[row.end].as_micros() / was as f64;
            (row.end, Nanos::from_micros_f64(each * now as f64))
        } else {
            continue;
        };
        if scheduled.carried.gaps[gap.0] {
            costs.gaps[gap.0] = gap.1;
        }
    }
}

fn optimizer(graph: &StepGraph, op: OpId) -> bool {
    graph.ops[op].annotation && EventName::parse(graph.op_name(op)).is_optimizer()
}

/// Parameters that get a gradient.
fn parameters(graph: &StepGraph, again: impl Fn(OpId) -> bool) -> usize {
    let gets = |&op: &OpId| EventName::parse(graph.op_name(op)).is_accumulation() && !again(op);
    graph.ops.keys().filter(gets).count()
}
