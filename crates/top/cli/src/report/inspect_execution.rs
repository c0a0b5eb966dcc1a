//! An execution trace, as text.

use steptime::answers::execution::ExecutionInspected;

use super::format::{self, grouped, percent};
use super::width::{prose, shorten, wrapped};

/// Operators to name.
const OPS: usize = 8;

/// Counts, the most frequent operators, and the join.
pub fn text(execution: &ExecutionInspected) -> String {
    let count = |n: usize| grouped(n as u64);
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
    let ops = execution.ops.iter().take(OPS);
    let ops: Vec<String> =
        ops.map(|op| format!("{} {}", count(op.count), shorten(format::op(&op.name), 40))).collect();
    if !ops.is_empty() {
        text.push_str(&wrapped(&format!("· most frequent: {}", ops.join(", ")), prose(), 2));
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
    text
}
