//! Memory of parameters that FSDP gathers: it is freed after a block, and allocated again at the same address before the next pass.

use steptime_trace::{ExecutionTrace, Tensor, Value};

use super::ids::NodeId;
use super::tree::Tree;

/// Function that allocates and fills the memory of parameters, and the op that fills it: parts, sizes, dimension, parameters.
const COPY_OUT: &str = "FSDP::all_gather_copy_out";
const FILL: &str = "fsdp::split_with_sizes_copy";
const FILLED: usize = 3;

/// Returns the parameters whose memory a node allocates, as a flat list; empty for any other node.
pub(super) fn parameters<'t>(trace: &'t ExecutionTrace, tree: &Tree, node: NodeId) -> Vec<&'t Tensor> {
    let is = |node: NodeId, name: &str| trace.name(trace.nodes.name[node.index()]).starts_with(name);
    if !is(node, COPY_OUT) {
        return Vec::new();
    }
    let fills = tree.children(node).iter().filter(|&&child| is(child, FILL));
    fills.flat_map(|&fill| filled(trace, fill)).collect()
}

fn filled(trace: &ExecutionTrace, fill: NodeId) -> Vec<&Tensor> {
    let Some(&Value::List(range)) = trace.inputs(fill.index()).get(FILLED) else { return Vec::new() };
    let tensor = |value: &Value| match *value {
        Value::Tensor(index) => Some(trace.values.tensor(index)),
        _ => None,
    };
    trace.list(range).iter().filter_map(tensor).collect()
}
