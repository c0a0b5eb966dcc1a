//! Ops on tensors that hold others, as a `DTensor` holds a rank's part: Python runs ops on what they hold, and these compute.

use steptime_graph::execution::ExecutionGraph;

use super::branch::Branch;
use crate::call::OpCall;
use crate::derive::TreeKind;

/// Marks where an op on such tensors is handed to Python, and where one is whose result alone is described.
const HANDED: &str = "PythonSubclass";
const DESCRIBED: &str = "PythonDispatchMode";

/// Leaves of an op on tensors that hold others its name, and what computes inside it.
pub(super) fn open(trace: &ExecutionGraph, branches: &mut [Branch]) {
    for branch in branches {
        if is_handed(branch) {
            branch.call = OpCall::new(branch.name(), Vec::new());
            branch.kind = TreeKind::Function;
        }
        if branch.name() == HANDED {
            branch.children.retain(|child| !is_described(trace, child));
        }
        open(trace, &mut branch.children);
    }
}

/// The ops in place of one that was handed to Python; any other as it is.
pub(super) fn held(branch: Branch) -> Vec<Branch> {
    if branch.kind != TreeKind::Function || !is_handed(&branch) {
        return vec![branch];
    }
    let marks = branch.children.into_iter().filter(|child| child.name() == HANDED);
    marks.flat_map(|mark| mark.children).flat_map(held).collect()
}

fn is_handed(branch: &Branch) -> bool {
    branch.children.iter().any(|child| child.name() == HANDED)
}

/// Whether an op finds the shape of a result, and computes nothing.
fn is_described(trace: &ExecutionGraph, branch: &Branch) -> bool {
    let on_meta = |branch: &Branch| {
        let given = branch.origin.into_iter().flat_map(|origin| trace.output_tensors(origin));
        given.into_iter().any(|(_, tensor)| trace.name(trace.tensors.get(tensor).device) == "meta")
    };
    branch.children.iter().any(|child| child.name() == DESCRIBED) && any(branch, &on_meta)
}

/// Whether something holds for a node or one inside it.
fn any(branch: &Branch, is: &impl Fn(&Branch) -> bool) -> bool {
    is(branch) || branch.children.iter().any(|child| any(child, is))
}
