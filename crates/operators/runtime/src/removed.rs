//! Ops in place of a compiled kernel: the removed ones that it replaces.
//!
//! `fuse-elementwise` replaces a chain of ops by one kernel, whose call has inputs and results but no arithmetic. The removed ops keep their rows
//! in the step. Those that lead from the inputs of the call to its results are the arithmetic. The kernel is at the place of the last of them.

use rustc_hash::FxHashSet;
use steptime_step::{Call, OpId, StepIr, TensorId};

use crate::table;

/// Prefix of the names of compiled kernels.
pub(crate) const KERNEL: &str = "triton_";

/// The removed ops that compute the results of a kernel from its inputs, in order. `changed` has the ops in place that belong to earlier kernels,
/// and must not run again.
pub(crate) fn replaced_by(
    step: &StepIr,
    kernel: OpId,
    call: &Call,
    changed: &mut FxHashSet<OpId>,
) -> Vec<OpId> {
    let mut possible = computable(step, kernel, call);
    possible.retain(|op| !changed.contains(op));
    let mut needed: FxHashSet<TensorId> = call.gives().collect();
    let taken: FxHashSet<TensorId> = call.takes().collect();
    let mut found: Vec<OpId> = Vec::new();
    // The last op first: each comes before those that take its results.
    for &op in possible.iter().rev() {
        let Some(own) = step.ops[op].call.as_deref() else { continue };
        if own.gives().any(|tensor| needed.contains(&tensor)) {
            needed.extend(own.takes().filter(|tensor| !taken.contains(tensor)));
            found.push(op);
            if own.gives().any(|given| own.takes().any(|taken| taken == given)) {
                changed.insert(op);
            }
        }
    }
    found.reverse();
    found
}

/// The removed ops before a kernel whose inputs are those of its call, results of others of them, or older than the step; each at the highest level
/// with an implementation.
fn computable(step: &StepIr, kernel: OpId, call: &Call) -> Vec<OpId> {
    let running: FxHashSet<OpId> = step.running().into_iter().collect();
    let end = next_recorded(step, kernel).unwrap_or(step.ops.next_key());
    let removed = step.ops.keys().filter(|op| *op < end && !running.contains(op));
    let calls = || step.ops.keys().filter_map(|op| step.ops[op].call.as_deref());
    let made: FxHashSet<TensorId> = calls().flat_map(Call::gives).collect();
    let taken: FxHashSet<TensorId> = call.takes().collect();
    let mut available = taken.clone();
    let mut possible: FxHashSet<OpId> = FxHashSet::default();
    let mut all = Vec::new();
    for op in removed {
        let row = &step.ops[op];
        let inside = step.around(op).skip(1).any(|around| possible.contains(&around));
        let Some(own) = row.call.as_deref().filter(|_| !inside && table::find(&row.name).is_some()) else {
            continue;
        };
        let makes_input =
            own.gives().any(|given| taken.contains(&given) && own.takes().all(|own| own != given));
        let computed = own.takes().all(|tensor| available.contains(&tensor) || !made.contains(&tensor));
        if computed && !makes_input {
            available.extend(own.gives());
            possible.insert(op);
            all.push(op);
        }
    }
    all
}

/// The first recorded op of the thread that begins after an inserted one.
fn next_recorded(step: &StepIr, inserted: OpId) -> Option<OpId> {
    step.around(inserted).find_map(|op| {
        let row = &step.ops[op];
        let siblings = match row.parent {
            Some(parent) => &step.ops[parent].children,
            None => &step.threads[row.thread],
        };
        let place = siblings.iter().position(|&sibling| sibling == op)?;
        siblings[place + 1..].iter().copied().find(|&op| step.ops[op].origin.recorded().is_some())
    })
}
