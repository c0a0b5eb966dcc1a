//! Ops whose shapes alone were found: what they would have called is not there.

use steptime_graph::execution::ExecutionGraph;

use super::branch::Branch;
use crate::call::{Arg, OpCall};
use crate::derive::is_dispatched;
use crate::ops::Lowered;
use crate::registry;

/// Ops call others, and these others: so deep at most.
const DEEPEST: usize = 8;

/// Puts in what a composite op calls, where nothing was recorded inside.
pub(super) fn expand(trace: &ExecutionGraph, branch: &mut Branch) {
    let dispatched = branch.origin.is_some_and(|origin| is_dispatched(trace, origin));
    if dispatched && branch.children.is_empty() {
        branch.children = inside(&branch.call, DEEPEST);
    }
    branch.children.iter_mut().for_each(|child| expand(trace, child));
}

fn inside(call: &OpCall, depth: usize) -> Vec<Branch> {
    // The CPU's own name for what it calls; the rules take it from there.
    if call.name == "aten::convolution" {
        let switches = [false, false, true, true].map(Arg::Bool);
        let inputs = call.inputs.iter().take(9).cloned().chain(switches).collect();
        let inner = OpCall { outputs: call.outputs.clone(), ..OpCall::new("aten::_convolution", inputs) };
        return vec![Branch::new(inner, Vec::new())];
    }
    if depth == 0 || registry::lower(call) != Lowered::Children {
        return Vec::new();
    }
    let called = registry::expand(call).into_iter();
    called
        .map(|call| (inside(&call, depth - 1), call))
        .map(|(children, call)| Branch::new(call, children))
        .collect()
}
