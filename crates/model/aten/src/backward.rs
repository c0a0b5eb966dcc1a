//! What autograd calls for the gradients of a call.

use crate::call::OpCall;
use crate::registry;

/// Ops nest no deeper than this; a rule that calls itself would.
const DEEPEST: usize = 12;

/// The ops that autograd calls for the gradients of a call, in their order; views are left out. Every tensor of
/// floating-point numbers is taken to need its gradient, and the gradient of the result to be dense and in the
/// result's order. Ops that call others get the gradients of these, last first.
#[must_use]
pub fn backward(call: &OpCall) -> Vec<OpCall> {
    collect(call, 0)
}

fn collect(call: &OpCall, depth: usize) -> Vec<OpCall> {
    let rule = registry::find(&call.name).and_then(|op| op.backward);
    match rule {
        Some(rule) => rule(call),
        None if depth < DEEPEST => {
            registry::expand(call).iter().rev().flat_map(|child| collect(child, depth + 1)).collect()
        }
        None => Vec::new(),
    }
}
