//! An execution trace, as text.

use steptime_answers::execution::{ExecutionReport, LinkerActivities, OpCount};

use crate::report::format::{self, grouped, percent};
use crate::report::width::{prose, shorten, wrapped};

/// Number of operators to show.
const OPS: usize = 8;

/// Returns the counts, the most frequent operators, and the join with the timing trace.
pub fn text(execution: &ExecutionReport) -> String {
    let mut text = wrapped(
        &format!(
            "execution trace, schema {}: {} nodes, {} operators ({} top-level), {} tensors on {} storages, \
             {} dependencies, {} backward functions paired, {} not, {} repairs",
            execution.schema,
            count(execution.nodes),
            count(execution.operators),
            count(execution.top_level),
            count(execution.tensors),
            count(execution.storages),
            count(execution.dependencies),
            count(execution.paired),
            count(execution.unpaired),
            count(execution.repairs),
        ),
        prose(),
        2,
    );
    text.push('\n');
    if !execution.ops.is_empty() {
        let ops = listed(&execution.ops);
        text.push_str(&wrapped(&format!("· most frequent: {ops}"), prose(), 2));
        text.push('\n');
    }
    if let Some(linked) = &execution.linked {
        text.push_str(&wrapped(&linked_line(linked), prose(), 2));
        text.push('\n');
    }
    if let Some(join) = &execution.join {
        text.push_str(&format!(
            "· joined with Kineto: {} of {} nodes ({} by id, {} by order)\n",
            percent(join.share),
            count(join.joinable),
            count(join.by_rf_id),
            count(join.by_order),
        ));
        if !join.unmatched.is_empty() {
            let names: Vec<String> = join.unmatched.iter().map(|name| shorten(name, 40)).collect();
            text.push_str(&wrapped(&format!("· not found: {}", names.join(", ")), prose(), 2));
            text.push('\n');
        }
    }
    if !execution.lacking.is_empty() {
        let all = count(execution.lacking.iter().map(|op| op.count).sum());
        let ops = listed(&execution.lacking);
        text.push_str(&wrapped(
            &format!("· {all} ops of the timed step are not found in it: {ops}"),
            prose(),
            2,
        ));
        text.push('\n');
    }
    text
}

fn linked_line(linked: &LinkerActivities) -> String {
    let times = match linked.timed {
        0 => "without their times".to_owned(),
        _ => format!("{:.3} ms together as recorded, which predictions do not use", linked.device_ms),
    };
    format!("· {} kernels and copies that a linker wrote into it: {times}", count(linked.activities))
}

fn count(n: usize) -> String {
    grouped(n as u64)
}

fn listed(ops: &[OpCount]) -> String {
    let ops = ops.iter().take(OPS);
    let ops: Vec<String> =
        ops.map(|op| format!("{} {}", count(op.count), shorten(format::op(&op.name), 40))).collect();
    ops.join(", ")
}
