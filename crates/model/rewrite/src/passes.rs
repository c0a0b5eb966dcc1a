//! The forward and the backward pass of a step.

use rustc_hash::FxHashSet;
use steptime_graph::HostThreadId;
use steptime_graph::execution::NodeId;
use steptime_graph::names::EventName;
use steptime_step::{OpId, Step, TensorId};

use crate::names::calls;

/// Ops that no other is around but annotations, told apart by pass. Those of optimizers are in neither.
pub(crate) struct Passes {
    /// Ops of the script, in order: of the forward pass, and what takes gradients. Of a CPU, its functions, too.
    pub script: Vec<OpId>,
    /// How many of these come before the first update.
    pub before_update: usize,
    /// Those that take no gradient, nor what is made of one.
    pub forward: Vec<OpId>,
    /// Functions of the autograd engine, and what else runs beside the script, in order.
    pub backward: Vec<OpId>,
}

impl Passes {
    pub fn of(step: &Step) -> Passes {
        let (mut script, mut backward) = (Vec::new(), Vec::new());
        let mut before_update = None;
        for op in step.running() {
            let row = &step.ops[op];
            let is_script = row.thread == HostThreadId::MAIN;
            // An update that comes before all else is the end of the step before.
            if is_script && !script.is_empty() && step.event(op).is_optimizer_step() {
                before_update.get_or_insert(script.len());
            }
            if row.annotation || step.outermost(op) != op || step.is_in(op, EventName::is_optimizer) {
                continue;
            }
            if is_script {
                script.push(op);
            }
            if !is_script || step.event(op).is_engine() {
                backward.push(op);
            }
        }
        let forward = before_gradients(step, &script, &backward);
        Passes { before_update: before_update.unwrap_or(script.len()), script, forward, backward }
    }

    /// The number of the last batch whose gradients a rule adds up; 0 where there is one batch.
    pub fn last_round(&self, step: &Step) -> u32 {
        self.backward.iter().map(|&function| step.ops[function].round).max().unwrap_or(0)
    }

    /// Whether gradients are computed in several passes: a function runs again, or a number comes that is above the first.
    pub fn are_several(&self, step: &Step) -> bool {
        if self.backward.iter().any(|&function| step.ops[function].again.is_some()) {
            return true;
        }
        let numbers = self.backward.iter().filter_map(|&function| step.ops[function].sequence);
        let mut numbers = numbers.peekable();
        let first = numbers.peek().copied();
        numbers.any(|number| Some(number) > first)
    }
}

/// Ops of the script that take no gradient, nor what was made of one. None of those recorded before the first function does, whatever
/// lay at the address of a tensor later.
fn before_gradients(step: &Step, script: &[OpId], backward: &[OpId]) -> Vec<OpId> {
    let begins = backward.iter().filter_map(|&op| node(step, op)).min();
    let is_before = |op: &&OpId| node(step, **op).zip(begins).is_some_and(|(own, begins)| own < begins);
    let before = script.iter().rposition(|op| is_before(&op)).map_or(0, |last| last + 1);
    let mut forward: FxHashSet<TensorId> = FxHashSet::default();
    let mut later: FxHashSet<TensorId> = backward.iter().flat_map(|&op| gives(step, op)).collect();
    let mut kept = Vec::with_capacity(script.len());
    for (at, &op) in script.iter().enumerate().filter(|(_, op)| !step.event(**op).is_engine()) {
        let taken = takes(step, op);
        if at >= before && taken.iter().any(|tensor| later.contains(tensor) && !forward.contains(tensor)) {
            later.extend(gives(step, op));
        } else {
            forward.extend(taken.into_iter().chain(gives(step, op)));
            kept.push(op);
        }
    }
    kept
}

/// The node of the execution trace that an op was, or the first inside it.
fn node(step: &Step, op: OpId) -> Option<NodeId> {
    step.subtree(op).into_iter().find_map(|op| step.ops[op].node)
}

/// The tensors that an op takes, and what is inside it, in order.
pub(crate) fn takes(step: &Step, op: OpId) -> Vec<TensorId> {
    calls(step, op).flat_map(|call| call.takes()).collect()
}

/// The tensors that an op gives, and what is inside it, in order.
pub(crate) fn gives(step: &Step, op: OpId) -> Vec<TensorId> {
    calls(step, op).flat_map(|call| call.gives()).collect()
}
