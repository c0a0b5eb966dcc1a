//! Slack of ops.

use std::collections::HashMap;

use steptime_graph::{OpId, StepGraph};
use steptime_sim::critical::Slack;
use steptime_trace::Nanos;

/// Smallest slack of any mark or device activity of the top-level ops of each name.
pub fn by_op<'g>(graph: &'g StepGraph, slack: &Slack) -> HashMap<&'g str, Nanos> {
    let mut least: HashMap<&str, Nanos> = HashMap::new();
    let mut note = |op: OpId, time: Nanos| {
        let known = least.entry(graph.op_name(op)).or_insert(time);
        *known = (*known).min(time);
    };
    for op in graph.ops.keys().filter(|&op| graph.is_top_level(op)) {
        let row = &graph.ops[op];
        for mark in row.begin.until(row.end.next()) {
            note(op, slack.marks[mark]);
        }
    }
    for (activity, row) in graph.activities.iter_enumerated() {
        if let Some(op) = graph.calls[row.call].op {
            note(graph.top_level(op), slack.activities[activity]);
        }
    }
    least
}
