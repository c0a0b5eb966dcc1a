//! Ops on tensors that contain others, as a `DTensor` contains a rank's part: Python runs ops on the inner tensors, and these compute.

use steptime_graph::execution::ExecutionGraph;

use super::branch::Branch;
use crate::call::OpCall;
use crate::derive::TreeKind;

/// Marks of an op on such tensors that is passed to Python, and of an op that only computes the description of its result.
const HANDED: &str = "PythonSubclass";
const DESCRIBED: &str = "PythonDispatchMode";

/// Reduces an op on tensors that contain others to its name and the computing ops inside it.
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

/// Returns the ops that replace an op that was passed to Python; any other op unchanged.
pub(super) fn unwrap(branch: Branch) -> Vec<Branch> {
    if branch.kind != TreeKind::Function || !is_handed(&branch) {
        return vec![branch];
    }
    let marks = branch.children.into_iter().filter(|child| child.name() == HANDED);
    marks.flat_map(|mark| mark.children).flat_map(unwrap).collect()
}

fn is_handed(branch: &Branch) -> bool {
    branch.children.iter().any(|child| child.name() == HANDED)
}

/// Whether an op only computes the shape of a result.
fn is_described(trace: &ExecutionGraph, branch: &Branch) -> bool {
    let on_meta = |branch: &Branch| {
        let given = branch.origin.into_iter().flat_map(|origin| trace.output_tensors(origin));
        given.into_iter().any(|(_, tensor)| trace.name(trace.tensors.get(tensor).device) == "meta")
    };
    branch.children.iter().any(|child| child.name() == DESCRIBED) && any(branch, &on_meta)
}

/// Whether a predicate holds for a node or one inside it.
fn any(branch: &Branch, is: &impl Fn(&Branch) -> bool) -> bool {
    is(branch) || branch.children.iter().any(|child| any(child, is))
}
